package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/words"
)

const (
	// idleCheck is how long nothing may arrive before we look for the reason.
	idleCheck = time.Second
	// discoverInterval is how often a follower looks for new partitions.
	discoverInterval = 5 * time.Second
)

// consumer prints the records of some partitions.
type consumer struct {
	client    *kgo.Client
	admin     *kadm.Client
	isolation kgo.IsolationLevel

	topics []string
	only   []int32 // The partitions to read, all if empty.
	follow bool
	limit  int64 // How many records to print, 0 for all.

	write recordWriter
	flush func() error
	warn  func(format string, args ...any)

	ids     map[string]kadm.TopicID // A topic that is made anew has another id.
	reading map[source.TopicPartition]*span
	pending int // How many of reading have not reached their end.
	printed int64
}

// span is the part of a partition that is still to be read.
type span struct {
	next int64
	end  int64
	done bool
}

// open finds the topics and where to start in each partition.
func (c *consumer) open(ctx context.Context, start from) error {
	details, missing, err := cli.FindTopics(ctx, c.admin, c.topics)
	if err == nil {
		err = errors.Join(missing...)
	}
	if err != nil {
		return err
	}
	all, err := listBounds(ctx, c.admin, start, c.isolation == kgo.ReadCommitted(), c.topics)
	if err != nil {
		return err
	}
	c.ids, c.reading = map[string]kadm.TopicID{}, map[source.TopicPartition]*span{}
	assign := map[string]map[int32]kgo.Offset{}
	for _, d := range details.Sorted() {
		c.ids[d.Topic] = d.ID
		for _, p := range c.only {
			if _, ok := d.Partitions[p]; !ok {
				return fmt.Errorf("topic %s has no partition %d; it has %s", d.Topic, p, words.Plural(len(d.Partitions), "partition"))
			}
		}
		for _, p := range d.Partitions.Sorted() {
			if len(c.only) > 0 && !slices.Contains(c.only, p.Partition) {
				continue
			}
			tp := source.TopicPartition{Topic: d.Topic, Partition: p.Partition}
			c.assign(assign, tp, c.startAt(tp, start, all[tp]), all[tp].end)
		}
	}
	c.client.AddConsumePartitions(assign)
	return nil
}

// startAt resolves --from in a partition, and says so if an offset is not there.
func (c *consumer) startAt(tp source.TopicPartition, start from, b bounds) int64 {
	at := start.resolve(b)
	if start.kind == fromOffset && start.n != at {
		c.warn("%s-%d has the offsets %d to %d: starting at %d, not %d", tp.Topic, tp.Partition, b.start, b.end, at, start.n)
	}
	return at
}

// assign adds a partition to those that are read, unless it has nothing for us.
func (c *consumer) assign(assign map[string]map[int32]kgo.Offset, tp source.TopicPartition, next, end int64) {
	s := &span{next: next, end: end, done: !c.follow && next >= end}
	c.reading[tp] = s
	if s.done {
		return
	}
	c.pending++
	if assign[tp.Topic] == nil {
		assign[tp.Topic] = map[int32]kgo.Offset{}
	}
	assign[tp.Topic][tp.Partition] = kgo.NewOffset().At(next)
}

// run prints records until there are no more to print. An interrupt is the
// ordinary end of a follower, and so is no error.
func (c *consumer) run(ctx context.Context) error {
	err := c.read(ctx)
	if flushErr := c.flush(); err == nil {
		err = flushErr
	}
	if c.follow && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (c *consumer) read(ctx context.Context) error {
	checked := time.Now()
	for c.pending > 0 {
		pollCtx, cancel := context.WithTimeout(ctx, idleCheck)
		fetches := c.client.PollFetches(pollCtx)
		cancel()
		full, err := c.print(fetches)
		if err == nil {
			err = c.flush()
		}
		if full || err != nil || c.pending == 0 {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case c.follow && time.Since(checked) > discoverInterval:
			err, checked = c.discover(ctx), time.Now()
		case !c.follow && fetches.NumRecords() == 0:
			err = c.skip(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// print prints what a poll returned, and says whether the limit is reached.
func (c *consumer) print(fetches kgo.Fetches) (full bool, err error) {
	for _, e := range fetches.Errors() {
		var loss *kgo.ErrDataLoss
		switch {
		case errors.Is(e.Err, context.DeadlineExceeded), errors.Is(e.Err, context.Canceled):
		case errors.As(e.Err, &loss):
			c.warn("%s", loss)
		default:
			return false, cli.TopicError(e.Topic, e.Err, "")
		}
	}
	for records := fetches.RecordIter(); !records.Done(); {
		r := records.Next()
		tp := source.TopicPartition{Topic: r.Topic, Partition: r.Partition}
		s := c.reading[tp]
		if !c.follow && r.Offset >= s.end {
			c.finish(tp)
			continue
		}
		if !r.Attrs.IsControl() {
			if err := c.write(r); err != nil {
				return false, err
			}
			if c.printed++; c.printed == c.limit {
				return true, nil
			}
		}
		s.next = r.Offset + 1
		if !c.follow && s.next >= s.end {
			c.finish(tp)
		}
	}
	return false, nil
}

// finish notes that a partition is read to its end.
func (c *consumer) finish(tp source.TopicPartition) {
	if s := c.reading[tp]; !s.done {
		s.done = true
		c.pending--
		c.client.PauseFetchPartitions(map[string][]int32{tp.Topic: {tp.Partition}})
	}
}

// discover adds the partitions that a topic got while we follow it. A broker
// that does not answer may come back, and then we go on.
func (c *consumer) discover(ctx context.Context) error {
	details, missing, err := cli.FindTopics(ctx, c.admin, c.topics)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		c.warn("still trying to reach the broker: %s", err)
		return nil
	}
	if len(missing) > 0 {
		return errors.Join(missing...)
	}
	assign := map[string]map[int32]kgo.Offset{}
	for _, d := range details.Sorted() {
		if d.ID != c.ids[d.Topic] {
			return fmt.Errorf("topic %s was deleted and created again", d.Topic)
		}
		for _, p := range d.Partitions.Sorted() {
			tp := source.TopicPartition{Topic: d.Topic, Partition: p.Partition}
			if c.reading[tp] == nil && len(c.only) == 0 {
				c.assign(assign, tp, 0, 0)
			}
		}
	}
	c.client.AddConsumePartitions(assign)
	return nil
}
