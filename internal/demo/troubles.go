package demo

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// eager is how members rebalance that stop for each other.
var eager = kgo.Balancers(kgo.RangeBalancer())

// numbered names a member.
func numbered(group string, i int) string { return fmt.Sprintf("%s-%d", group, i+1) }

// flapper is the member that joins and leaves, as one does whose deployment is restarted
// again and again.
func flapper(ctx context.Context, d *Demo) {
	m := member{group: "email-sender", id: numbered("email-sender", 2), topics: []string{orders}, opts: []kgo.Opt{eager}}
	for wait(ctx, d.timing.away) {
		joined, goes := context.WithTimeout(ctx, d.timing.joined)
		d.read(joined, &m)
		goes()
	}
}

// catcher reads faster than records come until it has read all, and then rests, so that
// there is something to catch up with again.
func catcher(ctx context.Context, d *Demo) {
	const perSecond, enough = 40, 5
	few := 0 // How often in a row there were fewer records than it could handle.
	d.read(ctx, &member{
		group: "search-index", id: "search-index-1", topics: []string{clicks}, perSecond: perSecond,
		each: func(ctx context.Context, _ *kgo.Client, handled int) {
			if few++; handled >= perSecond {
				few = 0
			}
			if few == enough {
				few = 0
				wait(ctx, d.timing.rests)
			}
		},
	})
}

// poisonedPartition and poisonedFrom are where the members of warehouse fail.
const (
	poisonedPartition = 1
	poisonedFrom      = 5
)

// poisoned returns members that fail at a record of one partition, read on and do not
// commit there any more.
func poisoned() []func(context.Context, *Demo) {
	var out []func(context.Context, *Demo)
	for i := range 2 {
		out = append(out, reader(member{
			group: "warehouse", id: numbered("warehouse", i), topics: []string{shipments},
			fails: func(r *kgo.Record) bool { return r.Partition == poisonedPartition && r.Offset >= poisonedFrom },
		}))
	}
	return out
}

// deadlyPartition and deadlyFrom are where the members of invoices die.
const (
	deadlyPartition = 2
	deadlyFrom      = 5
)

// dying returns members that end at a record which they cannot handle, and are started again,
// as by an orchestrator.
func dying() []func(context.Context, *Demo) {
	var out []func(context.Context, *Demo)
	for i := range 2 {
		out = append(out, func(ctx context.Context, d *Demo) {
			for ctx.Err() == nil {
				life(ctx, d, numbered("invoices", i))
				wait(ctx, d.timing.away)
			}
		})
	}
	return out
}

// life is a member that lives until it reads the record.
func life(ctx context.Context, d *Demo, id string) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	killed := false
	d.read(ctx, &member{
		group: "invoices", id: id, topics: []string{payments}, opts: []kgo.Opt{eager},
		fails: func(r *kgo.Record) bool {
			deadly := r.Partition == deadlyPartition && r.Offset >= deadlyFrom
			killed = killed || deadly
			return deadly
		},
		each: func(context.Context, *kgo.Client, int) { // After the commit of the others.
			if killed {
				end()
			}
		},
	})
}

// paused returns two members, of which the second has paused what it reads and never
// goes on, though it stays in the group.
func paused() []func(context.Context, *Demo) {
	m := func(i int) member {
		return member{group: "loyalty-points", id: numbered("loyalty-points", i), topics: []string{orders}}
	}
	second := m(1)
	second.each = func(_ context.Context, client *kgo.Client, handled int) {
		if handled > 0 {
			client.PauseFetchTopics(orders)
		}
	}
	return []func(context.Context, *Demo){reader(m(0)), reader(second)}
}

// forgetful is an assignor that does not know of the last partition of a topic, as one of
// an application's own that counts from one.
type forgetful struct{ kgo.GroupBalancer }

// ProtocolName implements kgo.GroupBalancer.
func (forgetful) ProtocolName() string { return "tax-office-range" }

// MemberBalancer implements kgo.GroupBalancer.
func (f forgetful) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	b, topics, err := f.GroupBalancer.MemberBalancer(members)
	if err != nil {
		return nil, nil, err
	}
	return oneLess{b.(kgo.GroupMemberBalancerOrError)}, topics, nil
}

// oneLess shares out all partitions but the last.
type oneLess struct {
	kgo.GroupMemberBalancerOrError
}

// BalanceOrError implements kgo.GroupMemberBalancerOrError.
func (o oneLess) BalanceOrError(topics map[string]int32) (kgo.IntoSyncAssignment, error) {
	fewer := map[string]int32{}
	for topic, partitions := range topics {
		fewer[topic] = partitions - 1
	}
	return o.GroupMemberBalancerOrError.BalanceOrError(fewer)
}

// statics returns three static members, of which the third goes away without a word, and
// comes back now and then.
func statics() []func(context.Context, *Demo) {
	m := func(d *Demo, i int) *member {
		id := numbered("stock-keeper", i)
		return &member{
			group: "stock-keeper", id: id, topics: []string{stock},
			opts: []kgo.Opt{eager, kgo.InstanceID(id), kgo.SessionTimeout(d.timing.session)},
		}
	}
	stays := func(i int) func(context.Context, *Demo) {
		return func(ctx context.Context, d *Demo) { d.read(ctx, m(d, i)) }
	}
	goes := func(ctx context.Context, d *Demo) {
		for ctx.Err() == nil {
			lives, die := context.WithTimeout(ctx, d.timing.lives)
			d.read(lives, m(d, 2))
			die()
			wait(ctx, d.timing.gone)
		}
	}
	return []func(context.Context, *Demo){stays(0), stays(1), goes}
}

// openTransactions begins a transaction and leaves it open for long, again and again.
func openTransactions(ctx context.Context, d *Demo) {
	const id = "month-end-close"
	client, err := d.client(id, kgo.TransactionalID(id), kgo.TransactionTimeout(d.timing.open+d.timing.between), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		d.logger.Error("the demo has no transaction", "error", err)
		return
	}
	defer client.Close()
	random := d.random(uint64(len(topics)) + 1)
	for ctx.Err() == nil {
		if err := client.BeginTransaction(); err != nil {
			d.logger.Error("the demo has no transaction", "error", err)
			return
		}
		r := entry(random)
		r.Partition = 0
		client.Produce(ctx, r, nil)
		if client.Flush(ctx) == nil {
			wait(ctx, d.timing.open)
		}
		// At the end of the demo too, so that readers can leave with all that they read.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		_ = client.EndTransaction(end, kgo.TryAbort)
		cancel()
		wait(ctx, d.timing.between)
	}
}

// leaver reads a little, commits it and leaves for good.
func leaver(ctx context.Context, d *Demo) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	seen := map[int32]bool{}
	d.read(ctx, &member{
		group: "legacy-export", id: "legacy-export-1", topics: []string{shipments},
		fails: func(r *kgo.Record) bool { seen[r.Partition] = true; return false },
		each: func(context.Context, *kgo.Client, int) {
			if len(seen) == int(partitionsOf(shipments)) {
				stop()
			}
		},
	})
}
