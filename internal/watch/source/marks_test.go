package source

import (
	"fmt"
	"testing"

	"muster/internal/group"
	"muster/internal/group/schema"
	"muster/internal/machine"
	"muster/internal/record"
	"muster/internal/watch"
	"muster/internal/watch/lag"
)

// Of every record that a shard writes the watch learns which group it is about.
func TestRecordsMarkTheirGroups(t *testing.T) {
	for name, r := range map[string]machine.Record{
		"an offset":          &schema.OffsetRecord{Group: "billing", Topic: "orders"},
		"a generation":       &schema.GroupRecord{Group: "billing"},
		"a rebalance":        &schema.RebalanceRecord{Group: "billing"},
		"a departure":        &schema.DepartureRecord{Group: "billing", Member: "m"},
		"a silence":          &schema.SilenceRecord{Group: "billing", Member: "m"},
		"an epoch":           &schema.ConsumerEpochRecord{Group: "billing"},
		"a member":           &schema.ConsumerMemberRecord{Group: "billing", Member: "m"},
		"what a member has":  &schema.ConsumerCurrentRecord{Group: "billing", Member: "m"},
		"a regex":            &schema.ConsumerRegexRecord{Group: "billing", Regex: "a.*"},
		"a target":           &schema.ConsumerTargetRecord{Group: "billing", Member: "m"},
		"an epoch of target": &schema.ConsumerTargetEpochRecord{Group: "billing"},
	} {
		key, value := r.Encode()
		b, err := record.Build(record.PlainTemplate(), []record.Record{{Key: key, Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		m, got := &Marks{}, &taken{}
		m.Batch(b)
		if m.take(got); !got.any || got.all || !got.has(markOf("billing")) || got.has(markOf("shipping")) {
			t.Errorf("%s: %v %v, marked %t", name, got.any, got.all, got.has(markOf("billing")))
		}
		if m.take(got); got.any || got.has(markOf("billing")) {
			t.Errorf("%s: it is marked for ever", name)
		}
	}
	marker, err := record.BuildMarker(1, 0, record.Marker{Commit: true}, 0)
	if err != nil {
		t.Fatal(err)
	}
	odd, err := record.Build(record.PlainTemplate(), []record.Record{{Key: []byte{0, 1, 0, 9, 'x'}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]record.Batch{"the end of a transaction": marker, "a key that nobody can read": odd, "what is no batch": {1}} {
		m, got := &Marks{}, &taken{}
		m.Batch(b)
		if m.take(got); !got.has(markOf("billing")) || !got.has(markOf("shipping")) {
			t.Errorf("%s does not mark all", name)
		}
	}
}

// A group that rests is spared looks, and seen as soon as something happens to it.
func TestGroupsAreLookedAtWhenSomethingHappensToThem(t *testing.T) {
	roll, s := restingShard(t, 50)
	look := func(marked *taken) int {
		l := &looking{}
		asked := make([]watch.Group, len(roll))
		for i := range asked {
			asked[i].Quiet = lag.Resting
		}
		if n := l.portion(s, roll, asked, marked); n < portionGroups {
			t.Fatalf("%d of %d are done", n, len(roll))
		}
		return len(l.looks)
	}
	if n := look(&taken{}); n != portionGroups {
		t.Errorf("the first time %d are looked at", n)
	}
	for range 2 { // The rest of them.
		look(&taken{})
	}
	if n := look(&taken{}); n != 0 {
		t.Errorf("of groups at rest %d are looked at", n)
	}
	m, got := &Marks{}, &taken{}
	m.mark(markOf("group-000003"))
	m.any.Store(true)
	m.take(got)
	if n := look(got); n == 0 || n > 2 {
		t.Errorf("%d are looked at after one was marked", n)
	}
	joinShard(t, s, "group-000007", "client")
	if n := look(&taken{}); n != 1 {
		t.Errorf("%d are looked at while one rebalances", n)
	}
	if n := look(&taken{}); n != 1 {
		t.Errorf("%d are looked at while one still rebalances", n)
	}
}

// restingShard is a shard and its roll.
func restingShard(t *testing.T, groups int) ([]rolled, *group.Shard) {
	s := fullShard(t, groups, 1)
	roll := make([]rolled, groups)
	for i := range roll {
		name := fmt.Sprintf("group-%06d", i)
		roll[i] = rolled{name: name, mark: markOf(name)}
	}
	return roll, s
}
