// Package convert converts topics in Redis to layout indexed, step by step, and tells where offsets of before are now. docs/internals/converting.md has the design.
//
// It owns which conversions are under way at this broker, and no other state: what a step has changed is in the store, in the
// metadata and in groups, and every step can be taken again. Whether someone may convert a topic is
// decided before.
package convert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/coordinator"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/partition"
	"muster/internal/protocol"
	"muster/internal/store"
)

const (
	// timeout bounds a step of a conversion, with the wait for others.
	timeout = 25 * time.Second
	// prepareFor is about how long a part of the preparation takes.
	prepareFor = 2 * time.Second
)

// Options say what a conversion concerns.
type Options struct {
	Store store.Converter // nil for a store that cannot convert its logs
	// Partition finds a partition that this broker leads.
	Partition func(image *metadata.Image, topic string, index int32) (*partition.Partition, *kerr.Error)
	Groups    Groups
	// Assigned reads the partitions out of what a member of a classic group was given.
	Assigned func(image *metadata.Image, assignment []byte) ([]store.TopicPartition, bool)
	// Committed is told of offsets that took the place of others.
	Committed func(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse)
	// SetLayout writes down that a topic was converted.
	SetLayout func(ctx context.Context, topic, layout string) error
	// Turn is held by the request that reads much.
	Turn   chan struct{}
	Now    func() time.Time
	Logger *slog.Logger
}

// Groups are those of this broker.
type Groups interface {
	Do(ctx context.Context, group string, from coordinator.Client, req kmsg.Request) kmsg.Response
	Each(ctx context.Context, from coordinator.Client, groups []string, part func(groups []string) kmsg.Request, merge func(kmsg.Response))
	All(ctx context.Context, from coordinator.Client, part func() kmsg.Request, merge func(kmsg.Response))
}

// Converter converts topics.
type Converter struct {
	opts Options
	runs runs
}

// New returns what converts topics.
func New(opts Options) *Converter { return &Converter{opts: opts} }

// Step takes a step in the conversion of a topic which exists. It is asked for by someone at a host.
func (c *Converter) Step(ctx context.Context, image *metadata.Image, host string, ask *protocol.Convert, tp store.TopicPartition) (*protocol.Converting, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t := image.Topic(tp.Topic)
	by := asker{coordinator.Client{ID: "muster topics convert", Host: host}, image, t}
	switch {
	case c.opts.Store == nil:
		return unable("its records are not in Redis"), nil
	case t.Internal:
		return unable("it is a topic of the broker's own, which needs layout " + config.InternalLayout), nil
	case ask.Step == protocol.ConvertPreview:
		return c.preview(ctx, image, tp)
	case ask.Step == protocol.ConvertGroups:
		return c.concerned(ctx, by)
	}
	end, ok := c.runs.begin(tp.Topic, ask.Run, c.opts.Now)
	if !ok {
		out := unable("another conversion of it is under way")
		out.Busy = true
		return out, nil
	}
	defer end()
	switch ask.Step {
	case protocol.ConvertPrepare, protocol.ConvertSwitch:
		select { // One at a time: it reads much, and clients are in more of a hurry.
		case c.opts.Turn <- struct{}{}:
			defer func() { <-c.opts.Turn }()
		case <-ctx.Done():
			return nil, kerr.RequestTimedOut
		}
		return c.partition(ctx, image, ask.Step, tp)
	case protocol.ConvertLeave:
		return c.leave(ctx, by)
	case protocol.ConvertFinish:
		return c.finish(ctx, t)
	case protocol.ConvertTranslate:
		return c.translate(ctx, by)
	}
	return unable(fmt.Sprintf("the broker knows no step %q", ask.Step)), nil
}

func unable(why string) *protocol.Converting { return &protocol.Converting{Unable: why} }

// converting makes an answer about a partition. What stands in the way for good is told in words.
func converting(p *partition.Partition, err error) (*protocol.Converting, error) {
	if errors.Is(err, partition.ErrLayout) || errors.Is(err, store.ErrNotConvertible) {
		return unable(err.Error()), nil
	}
	if errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrFailed) {
		err = kerr.NotLeaderForPartition // The command asks the leader that is next.
	}
	return &protocol.Converting{Layout: string(p.Layout())}, err
}

func (c *Converter) preview(ctx context.Context, image *metadata.Image, tp store.TopicPartition) (*protocol.Converting, error) {
	p, wire := c.opts.Partition(image, tp.Topic, tp.Partition)
	if wire != nil {
		return nil, wire
	}
	x, err := p.PreviewConversion(ctx)
	out, err := converting(p, err)
	out.Setting = image.Topic(tp.Topic).Config.RedisLayout
	out.Records, out.Bytes, out.Millis, out.Copied = x.Records, x.Bytes, x.Time.Milliseconds(), x.Copied
	return out, err
}

func (c *Converter) partition(ctx context.Context, image *metadata.Image, step string, tp store.TopicPartition) (*protocol.Converting, error) {
	p, wire := c.opts.Partition(image, tp.Topic, tp.Partition)
	if wire != nil {
		return nil, wire
	}
	if step == protocol.ConvertSwitch {
		done, err := p.Convert(ctx)
		out, err := converting(p, err)
		out.Done = done
		return out, err
	}
	prepared, done, err := p.PrepareConversion(ctx, prepareFor)
	out, err := converting(p, err)
	out.Prepared, out.Done = prepared, done
	return out, err
}

// leave has members join again whose positions are of before. That takes that every partition is converted, and that the topic
// is not said to be yet: who may alter a topic may not remove members of groups at will.
func (c *Converter) leave(ctx context.Context, by asker) (*protocol.Converting, error) {
	if by.topic.Config.RedisLayout == string(store.LayoutIndexed) {
		return &protocol.Converting{Done: true}, nil
	}
	layouts, err := c.layouts(ctx, by.topic)
	if err != nil {
		return nil, err
	}
	if out := unconverted(layouts); out != nil {
		return out, nil
	}
	if !slices.ContainsFunc(layouts, func(l store.LogLayout) bool { return l.Renumbered }) {
		return &protocol.Converting{Done: true}, nil
	}
	return c.removeReaders(ctx, by)
}

// finish writes the setting once all partitions are converted.
func (c *Converter) finish(ctx context.Context, t *metadata.Topic) (*protocol.Converting, error) {
	layouts, err := c.layouts(ctx, t)
	if err != nil {
		return nil, err
	}
	if out := unconverted(layouts); out != nil {
		return out, nil
	}
	return &protocol.Converting{Done: true}, c.opts.SetLayout(ctx, t.Name, string(store.LayoutIndexed))
}

// layouts returns those of a topic's partitions.
func (c *Converter) layouts(ctx context.Context, t *metadata.Topic) ([]store.LogLayout, error) {
	tps := make([]store.TopicPartition, len(t.Partitions))
	for i := range tps {
		tps[i] = store.TopicPartition{Topic: t.Name, Partition: int32(i)}
	}
	return c.opts.Store.Layouts(ctx, tps)
}

// unconverted tells of the first partition that is not converted, nil if all are.
func unconverted(layouts []store.LogLayout) *protocol.Converting {
	for i, l := range layouts {
		if l.Layout != store.LayoutIndexed {
			return unable(fmt.Sprintf("partition %d is in layout %q", i, l.Layout))
		}
	}
	return nil
}
