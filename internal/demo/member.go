package demo

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// readsEach is how often a member polls and commits.
	readsEach = 1500 * time.Millisecond
	// atOnce is how many records a member takes at a time that has no limit.
	atOnce = 5000
	// bytesAhead is how much of a partition a member with a limit fetches at a time, for
	// each record that it can handle in a second.
	bytesAhead = 200
	// leaveTime is how long a member may take to leave its group.
	leaveTime = 2 * time.Second
)

// member is a member of a group, and how it works.
type member struct {
	group, id string
	topics    []string
	opts      []kgo.Opt
	perSecond int // How many records it can handle; 0 for all that come.

	// fails says whether it cannot handle a record. It reads on then, and commits
	// nothing more of that partition.
	fails func(*kgo.Record) bool
	// each is done after each commit, with how many records there were.
	each func(ctx context.Context, client *kgo.Client, handled int)
}

// reader returns a function that is a member until the demo ends.
func reader(m member) func(context.Context, *Demo) {
	return func(ctx context.Context, d *Demo) { d.read(ctx, &m) }
}

// read is a member until ctx ends.
func (d *Demo) read(ctx context.Context, m *member) {
	opts := append([]kgo.Opt{
		kgo.ConsumerGroup(m.group), kgo.ConsumeTopics(m.topics...), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(d.timing.heartbeat),
	}, m.opts...)
	most := atOnce
	if m.perSecond > 0 {
		most = max(1, int(float64(m.perSecond)*readsEach.Seconds()))
		// It gets on in all of its partitions, and does not read all of one first.
		opts = append(opts, kgo.FetchMaxPartitionBytes(int32(m.perSecond*bytesAhead)))
	}
	client, err := d.client(m.id, opts...)
	if err != nil {
		d.logger.Error("the demo has no member", "group", m.group, "member", m.id, "error", err)
		return
	}
	defer leave(client)
	failed := map[int32]bool{}
	for ctx.Err() == nil {
		handled := m.handle(client.PollRecords(ctx, most), failed)
		if len(handled) > 0 {
			_ = client.CommitRecords(ctx, handled...) // In a rebalance it fails, and they come again.
		}
		if m.each != nil {
			m.each(ctx, client, len(handled))
		}
		if !wait(ctx, readsEach) {
			return
		}
	}
}

// handle returns the records that may be committed.
func (m *member) handle(fetches kgo.Fetches, failed map[int32]bool) []*kgo.Record {
	var out []*kgo.Record
	for r := range fetches.RecordsAll() {
		if m.fails != nil && (failed[r.Partition] || m.fails(r)) {
			failed[r.Partition] = true
			continue
		}
		out = append(out, r)
	}
	return out
}

// leave ends a client that may be in a group.
func leave(client *kgo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	_ = client.LeaveGroupContext(ctx)
	client.Close()
}
