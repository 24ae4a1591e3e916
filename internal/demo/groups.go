package demo

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Group is a group of the demo.
type Group struct {
	Name string
	Look string        // What there is to see, in a sentence.
	From time.Duration // When that can be seen, after the start.
}

// group is a group and those who run it.
type group struct {
	Group
	topics []string
	atEnd  bool // It begins with what comes, not with what waits.
	run    []func(context.Context, *Demo)
}

// Groups returns the groups of the demo, in the order in which they are best looked at.
func Groups() []Group {
	var out []Group
	for i := range groups {
		out = append(out, groups[i].Group)
	}
	return out
}

// settles is after how long groups have members and were looked at.
const settles = 15 * time.Second

// stuckAfter is when the broker says of a partition that it stands still, and a bit.
const stuckAfter = 5*time.Minute + 30*time.Second

var groups = []group{
	{
		Group{"billing", "All is well: three members, and no lag to speak of.", settles},
		[]string{orders}, true, members("billing", orders, 3, kgo.Balancers(kgo.CooperativeStickyBalancer())),
	}, {
		Group{"email-sender", "Rebalances again and again: one member joins and leaves, and explain says who.", 90 * time.Second},
		[]string{orders}, true, append(members("email-sender", orders, 2, eager), flapper),
	}, {
		Group{"search-index", "Behind and catching up: how long it still takes is beside its lag.", time.Minute},
		[]string{clicks}, false, []func(context.Context, *Demo){catcher},
	}, {
		Group{"fraud-check", "Falls behind for good: one slow member for four partitions.", 7 * time.Minute},
		[]string{payments}, true, []func(context.Context, *Demo){reader(member{group: "fraud-check", id: "fraud-check-1", topics: []string{payments}, perSecond: 2})},
	}, {
		Group{"warehouse", "A partition is stuck: its owner fetches it and does not commit.", stuckAfter},
		[]string{shipments}, true, poisoned(),
	}, {
		Group{"invoices", "A record kills whoever reads it: one member after the other dies at the same offset.", 90 * time.Second},
		[]string{payments}, true, dying(),
	}, {
		Group{"loyalty-points", "Partitions are stuck: their owner has paused them, and fetches nothing.", stuckAfter},
		[]string{orders}, true, paused(),
	}, {
		Group{"tax-report", "A partition is stuck: the application's own assignor leaves it out.", stuckAfter},
		[]string{payments}, true, members("tax-report", payments, 2, kgo.Balancers(forgetful{kgo.RangeBalancer()})),
	}, {
		Group{"stock-keeper", "A static member is gone: its partitions waited for it until its session timed out.", 75 * time.Second},
		[]string{stock}, true, statics(),
	}, {
		Group{"customer-360", "Two applications in one group: their members subscribe to different topics.", settles},
		[]string{orders, clicks}, true, []func(context.Context, *Demo){
			reader(member{group: "customer-360", id: "crm-sync", topics: []string{orders}, opts: []kgo.Opt{eager}}),
			reader(member{group: "customer-360", id: "newsletter", topics: []string{clicks}, opts: []kgo.Opt{eager}}),
		},
	}, {
		Group{"ledger", "Held back by an open transaction: it has read all that is committed, and still has lag.", settles},
		[]string{ledger}, true, []func(context.Context, *Demo){
			reader(member{group: "ledger", id: "ledger-1", topics: []string{ledger}, opts: []kgo.Opt{kgo.FetchIsolationLevel(kgo.ReadCommitted())}}),
			openTransactions,
		},
	}, {
		Group{"recommendations", "A group of the new protocol (KIP-848): the broker assigns, and members have epochs.", settles},
		[]string{clicks}, true, members("recommendations", clicks, 2, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())),
	}, {
		Group{"legacy-export", "Lag, and no members to read it: the last one left.", 30 * time.Second},
		nil, false, []func(context.Context, *Demo){leaver},
	},
}

// begin commits where the group begins, as an operator does before an application's first
// start. One without topics has its members do so.
func (g *group) begin(ctx context.Context, admin *kadm.Client) error {
	if len(g.topics) == 0 {
		return nil
	}
	at, err := admin.ListStartOffsets(ctx, g.topics...)
	if g.atEnd {
		at, err = admin.ListEndOffsets(ctx, g.topics...)
	}
	if err != nil {
		return err
	}
	return admin.CommitAllOffsets(ctx, g.Name, at.Offsets())
}

// members returns members that work as they should.
func members(group, topic string, count int, opts ...kgo.Opt) []func(context.Context, *Demo) {
	var out []func(context.Context, *Demo)
	for i := range count {
		out = append(out, reader(member{group: group, id: numbered(group, i), topics: []string{topic}, opts: slices.Clone(opts)}))
	}
	return out
}
