package topics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/internal/protocol"
)

const (
	// convertPatience is for how long a step is tried that fails because partitions or groups are being moved, and
	// convertPause is the time between two attempts.
	convertPatience = time.Minute
	convertPause    = 200 * time.Millisecond
	// convertStep is how long a step may take; the broker ends it earlier.
	convertStep = 30 * time.Second
)

var (
	errNoConversions = errors.New("the broker does not convert topics: it is no muster broker, or one of an older version")
	errBusy          = errors.New("another conversion of it is under way")
)

// converter asks brokers for the steps of a conversion.
type converter struct {
	client *kgo.Client
	admin  *kadm.Client
	topic  string
	run    string // tells it from others of the same topic
}

// unableError says why the topic cannot be converted.
type unableError struct{ text string }

func (e *unableError) Error() string { return e.text }

// ofPartition asks the leader of a partition for a step.
func (c *converter) ofPartition(ctx context.Context, step string, partition int32) (out *protocol.Converting, err error) {
	err = c.patiently(ctx, func() error {
		details, missing, err := cli.FindTopics(ctx, c.admin, []string{c.topic})
		if err = errors.Join(append(missing, err)...); err != nil {
			return err
		}
		p, ok := details[c.topic].Partitions[partition]
		if !ok || p.Leader < 0 {
			return kerr.LeaderNotAvailable
		}
		out, err = c.ask(ctx, p.Leader, step, partition)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("partition %d of topic %s: %w", partition, c.topic, plainer(err))
	}
	return out, nil
}

// ofGroups asks all brokers for a step that is about their groups. A group that is moved meanwhile
// may be left out, so it is asked for again if there was a reason to.
func (c *converter) ofGroups(ctx context.Context, step string) (groups []protocol.ConvertingGroup, err error) {
	err = c.patiently(ctx, func() error {
		brokers, err := c.admin.ListBrokers(ctx)
		if err != nil {
			return err
		}
		groups = nil
		for _, b := range brokers {
			out, err := c.ask(ctx, b.NodeID, step, 0)
			if err != nil {
				return err
			}
			groups = append(groups, out.Groups...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("groups of topic %s: %w", c.topic, plainer(err))
	}
	return groups, nil
}

// patiently tries again what fails because a leader or a coordinator is another one, or is not there yet.
func (c *converter) patiently(ctx context.Context, do func() error) error {
	for began := time.Now(); ; {
		err := do()
		switch {
		case err == nil, ctx.Err() != nil, time.Since(began) > convertPatience, !passes(err):
			return err
		case errors.Is(err, errBusy) && time.Since(began) > convertPatience/10:
			return err // One that was ended is forgotten by then.
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(convertPause):
		}
	}
}

// passes says whether an error is one that may go away by itself.
func passes(err error) bool {
	var code *kerr.Error
	var unable *unableError
	switch {
	case errors.As(err, &unable), errors.Is(err, errNoConversions):
		return false
	case errors.As(err, &code):
		return code.Retriable && !errors.Is(err, kerr.UnknownTopicOrPartition)
	}
	return !cli.IsNoTopic(err) // A connection that broke.
}

func plainer(err error) error {
	var code *kerr.Error
	if errors.As(err, &code) {
		return cli.Plain(err)
	}
	return err
}

// ask asks a broker for a step.
func (c *converter) ask(ctx context.Context, broker int32, step string, partition int32) (*protocol.Converting, error) {
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	t := kmsg.NewDescribeTopicPartitionsRequestTopic()
	t.Topic = c.topic
	protocol.AskConvert(&t.UnknownTags, protocol.Convert{Step: step, Run: c.run})
	req.Topics = append(req.Topics, t)
	req.ResponsePartitionLimit = 1
	cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
	cursor.Topic, cursor.Partition = c.topic, partition
	req.Cursor = &cursor
	resp, err := req.RequestWith(ctx, c.client.Broker(int(broker)))
	if err != nil {
		return nil, err
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return nil, cli.TopicError(c.topic, err, "")
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, err
			}
			if out := protocol.GetConverting(&p.UnknownTags); out != nil && p.Partition == partition {
				return out, problem(out)
			}
		}
	}
	return nil, errNoConversions
}

func problem(out *protocol.Converting) error {
	switch {
	case out.Busy:
		return errBusy
	case out.Unable != "":
		return &unableError{out.Unable}
	}
	return nil
}
