package groupview

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// facts is a source that has them in memory, and remembers what it was asked.
type facts struct {
	groups map[string]Description
	logs   map[string]Log
	times  map[TopicPartition]time.Time
	asked  []string // The topics, one string for each question.
	from   map[TopicPartition]int64
	slow   bool // It finds no times before its context ends.
	err    error
}

func (f *facts) Describe(context.Context, []string) (map[string]Description, error) {
	return f.groups, f.err
}

func (f *facts) Logs(_ context.Context, topics []string) (map[string]Log, error) {
	f.asked = append(f.asked, strings.Join(topics, " "))
	return f.logs, f.err
}

func (f *facts) FirstTimes(ctx context.Context, from map[TopicPartition]int64) (map[TopicPartition]time.Time, error) {
	f.from = from
	if f.slow {
		<-ctx.Done()
		return f.times, ctx.Err()
	}
	return f.times, f.err
}

func tp(topic string, partition int32) TopicPartition { return TopicPartition{topic, partition} }

// log is a topic whose partitions begin at 10 and have the ends that are given.
func log(ends ...int64) Log {
	out := Log{Partitions: len(ends), Bounds: map[int32]Bounds{}}
	for p, end := range ends {
		if end >= 0 {
			out.Bounds[int32(p)] = Bounds{10, end}
		}
	}
	return out
}

func consumer(id string, topic string, partitions ...int32) Member {
	return Member{ID: id, ClientID: id, Host: "10.0.0.1", Topics: []string{topic}, Assigned: []Assigned{{topic, partitions}}}
}

func loadOne(t *testing.T, f *facts, name string) *Group {
	t.Helper()
	g, err := NewLoader(f).One(t.Context(), name)
	if err != nil || g == nil {
		t.Fatalf("group %s is %v, %v", name, g, err)
	}
	return g
}

// show words partitions: topic-0 committed/lag owner.
func show(g *Group) string {
	number := func(n *int64) string {
		if n == nil {
			return "-"
		}
		b, _ := json.Marshal(n)
		return string(b)
	}
	var out []string
	for i := range g.Partitions {
		p := &g.Partitions[i]
		text := p.Name() + " " + number(p.Committed) + "/" + number(p.Lag)
		if p.LagAtLeast {
			text += "+"
		}
		if p.Owner != nil {
			text += " " + *p.Owner
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ") + "; total " + number(g.TotalLag)
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestLagIsWhatIsThereToBeRead(t *testing.T) {
	for _, c := range []struct {
		name string
		d    Description
		logs map[string]Log
		want string
	}{
		{
			"between the bounds, at the end, below the start and beyond the end",
			Description{Group: Group{State: Empty}, Committed: map[TopicPartition]Commit{tp("a", 0): {Offset: 15}, tp("a", 1): {Offset: 20}, tp("a", 2): {Offset: 3}, tp("a", 3): {Offset: 99}}},
			map[string]Log{"a": log(20, 20, 20, 20)},
			"a-0 15/5, a-1 20/0, a-2 3/10, a-3 99/0; total 15",
		},
		{
			"no commit is no lag, though a member has the partition",
			Description{Group: Group{State: Stable, ProtocolType: Consumer, Members: []Member{consumer("m", "a", 0, 1)}}, Committed: map[TopicPartition]Commit{tp("a", 0): {Offset: 19}}},
			map[string]Log{"a": log(20, 20, 20)},
			"a-0 19/1 m, a-1 -/- m, a-2 -/-; total 1",
		},
		{
			"a partition without a leader makes the total unknown",
			Description{Group: Group{State: Empty}, Committed: map[TopicPartition]Commit{tp("a", 0): {Offset: 15}, tp("a", 1): {Offset: 15}}},
			map[string]Log{"a": log(20, -1)},
			"a-0 15/5, a-1 15/-; total -",
		},
		{
			"unless nothing of it is committed",
			Description{Group: Group{State: Stable, ProtocolType: Consumer, Members: []Member{consumer("m", "a", 0, 1)}}, Committed: map[TopicPartition]Commit{tp("a", 0): {Offset: 15}}},
			map[string]Log{"a": log(20, -1)},
			"a-0 15/5 m, a-1 -/- m; total 5",
		},
		{
			"a topic that is gone has none",
			Description{Group: Group{State: Empty}, Committed: map[TopicPartition]Commit{tp("gone", 0): {Offset: 15}, tp("a", 0): {Offset: 15}}},
			map[string]Log{"a": log(20)},
			"a-0 15/5, gone-0 15/-; total 5",
		},
		{
			"during a rebalance the topics are those of the commits",
			Description{Group: Group{State: Preparing, ProtocolType: Consumer, Members: []Member{consumer("m", "b", 0)}}, Committed: map[TopicPartition]Commit{tp("a", 1): {Offset: 15}}},
			map[string]Log{"a": log(20, 20), "b": log(20)},
			"a-0 -/-, a-1 15/5; total 5",
		},
		{
			"of a topic that no member reads any more there is what was committed",
			Description{Group: Group{State: Stable, ProtocolType: Consumer, Members: []Member{consumer("m", "b", 0)}}, Committed: map[TopicPartition]Commit{tp("a", 1): {Offset: 15}}},
			map[string]Log{"a": log(20, 20), "b": log(20)},
			"a-1 15/5, b-0 -/- m; total 5",
		},
		{
			"what a member was given is the group's, whatever it subscribes to",
			Description{Group: Group{State: Stable, ProtocolType: Consumer, Members: []Member{{ID: "m", Assigned: []Assigned{{"a", []int32{1}}}}}}},
			map[string]Log{"a": log(20, 20)},
			"a-1 -/- m; total 0",
		},
		{
			"a count of records is the lag, whatever the offsets say",
			Description{Group: Group{State: Empty}, Committed: map[TopicPartition]Commit{tp("a", 0): {15, &Count{Records: 2}}, tp("a", 1): {20, &Count{}}}},
			map[string]Log{"a": log(1<<50, 1<<50)},
			"a-0 15/2, a-1 20/0; total 2",
		},
		{
			"a count that ended early",
			Description{Group: Group{State: Empty}, Committed: map[TopicPartition]Commit{tp("a", 0): {15, &Count{1000, true}}, tp("a", 1): {20, &Count{Records: 1}}}},
			map[string]Log{"a": log(1<<50, 1<<50)},
			"a-0 15/1000+, a-1 20/1; total 1001",
		},
	} {
		g := loadOne(t, &facts{groups: map[string]Description{"g": c.d}, logs: c.logs}, "g")
		same(t, c.name, show(g), c.want)
		same(t, c.name+": at least", g.TotalLagAtLeast, strings.Contains(c.want, "+"))
		uncommitted := strings.Count(c.want, " -/-")
		same(t, c.name+": uncommitted", g.Uncommitted, uncommitted)
	}
}

func TestKeepLaggingKeepsWhatMayHaveLag(t *testing.T) {
	d := Description{Group: Group{State: Stable, ProtocolType: Consumer, Members: []Member{consumer("m", "a", 0, 1, 2, 3)}}, Committed: map[TopicPartition]Commit{tp("a", 0): {Offset: 15}, tp("a", 1): {Offset: 20}, tp("a", 3): {Offset: 1}}}
	g := loadOne(t, &facts{groups: map[string]Description{"g": d}, logs: map[string]Log{"a": log(20, 20, 20, -1)}}, "g")
	g.KeepLagging()
	same(t, "what is left", show(g), "a-0 15/5 m, a-3 1/- m; total -")
	g.Partitions = nil
	if g.KeepLagging(); g.Partitions == nil {
		t.Error("no partitions are null in JSON, not an empty list")
	}
}

func TestLoaderAsksForATopicOnce(t *testing.T) {
	f := &facts{logs: map[string]Log{"a": log(20)}, groups: map[string]Description{
		"g": {Group: Group{State: Empty}, Committed: map[TopicPartition]Commit{tp("a", 0): {Offset: 10}, tp("gone", 0): {Offset: 10}}},
		"h": {Group: Group{State: Empty}, Committed: map[TopicPartition]Commit{tp("a", 0): {Offset: 10}, tp("", 0): {Offset: 1}}},
	}}
	l := NewLoader(f)
	for _, names := range [][]string{{"g", "h"}, {"h"}} {
		if _, _, err := l.Load(t.Context(), names); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "what was asked", strings.Join(f.asked, ", "), "a gone")
	same(t, "the partitions", l.Partitions("a"), 1)
	same(t, "those of a topic that is gone", l.Partitions("gone"), 0)
	if got, want := l.PartitionCounts(), map[string]int{"a": 1, "gone": 0}; !maps.Equal(got, want) {
		t.Errorf("the counts are %v, want %v", got, want)
	}
	if b, ok := l.Bounds(tp("a", 0)); !ok || b != (Bounds{10, 20}) {
		t.Errorf("the bounds are %v, %v", b, ok)
	}
	if _, ok := l.Bounds(tp("a", 1)); ok {
		t.Error("there are bounds of a partition that does not exist")
	}
}

func TestGroupsThatCannotBeLoaded(t *testing.T) {
	broken := errors.New("broken")
	f := &facts{groups: map[string]Description{"here": {Group: Group{State: Empty}}, "dead": {Group: Group{State: Dead}}, "broken": {Err: broken}, "none": {Err: &NoGroupError{"none"}}}}
	groups, failed, err := NewLoader(f).Load(t.Context(), []string{"here", "dead", "broken", "none", "unknown"})
	if err != nil || len(groups) != 1 || groups["here"] == nil {
		t.Errorf("there are %v, %v", groups, err)
	}
	for name, want := range map[string]string{"dead": `there is no group "dead"`, "broken": "broken", "none": `there is no group "none"`, "unknown": "nothing is known of group unknown"} {
		same(t, name, failed[name].Error(), want)
	}
	for name, want := range map[string]error{"dead": nil, "none": nil, "broken": broken} {
		if g, err := NewLoader(f).One(t.Context(), name); g != nil || err != want {
			t.Errorf("%s is %v, %v, want %v", name, g, err, want)
		}
	}
	f.err = broken
	if _, err := NewLoader(f).One(t.Context(), "here"); err != broken {
		t.Errorf("the error is %v", err)
	}
}

func TestMembersTellWhatTheyReadOnlyWhileStable(t *testing.T) {
	m := Member{ID: "m", Topics: []string{"b", "a"}, Assigned: []Assigned{{"b", []int32{2, 0}}, {"a", []int32{1}}}}
	d := Description{Group: Group{State: Stable, ProtocolType: Consumer, Members: []Member{m, {ID: "idle"}}, Coordinator: &Coordinator{1, "x:1"}, Assignor: "range"}}
	g := loadOne(t, &facts{groups: map[string]Description{"g": d}}, "g")
	want := []Member{
		{ID: "m", Topics: []string{"a", "b"}, Assigned: []Assigned{{"a", []int32{1}}, {"b", []int32{0, 2}}}},
		{ID: "idle", Topics: []string{}, Assigned: []Assigned{}},
	}
	if !reflect.DeepEqual(g.Members, want) || g.Coordinator.Address != "x:1" || g.Assignor != "range" {
		t.Errorf("the group is %+v", g)
	}
	same(t, "the partitions of m", g.Members[0].PartitionCount(), 3)
	same(t, "the subscription", strings.Join(g.Subscribed(), " "), "a b")
	d.State = Completing
	g = loadOne(t, &facts{groups: map[string]Description{"g": d}}, "g")
	if g.Members[0].Topics != nil || g.Members[0].Assigned != nil || !g.Rebalances() {
		t.Errorf("during a rebalance the group is %+v", g)
	}
	d.State, d.ProtocolType = Stable, "connect"
	if g = loadOne(t, &facts{groups: map[string]Description{"g": d}}, "g"); g.Members[0].Topics != nil || g.Rebalances() {
		t.Errorf("of another protocol the group is %+v", g)
	}
}

func TestLagSecondsAreTheAgeOfTheFirstUnreadRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		d := Description{Group: Group{State: Empty}, Committed: map[TopicPartition]Commit{
			tp("a", 0): {Offset: 15}, tp("a", 1): {Offset: 20}, tp("a", 2): {Offset: 3}, tp("a", 3): {Offset: 19}, tp("a", 4): {Offset: 19},
		}}
		f := &facts{
			groups: map[string]Description{"g": d}, logs: map[string]Log{"a": log(20, 20, 20, 20, 20, 20)}, slow: true,
			times: map[TopicPartition]time.Time{tp("a", 0): now.Add(-time.Minute), tp("a", 2): now.Add(time.Hour), tp("a", 3): now},
		}
		l := NewLoader(f)
		g, err := l.One(t.Context(), "g")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.AddLagSeconds(t.Context(), g, now); err != nil { // What does not come in time stays unknown.
			t.Fatal(err)
		}
		var got []string
		for i := range g.Partitions {
			b, _ := json.Marshal(g.Partitions[i].LagSeconds)
			got = append(got, string(b))
		}
		same(t, "the ages", strings.Join(got, " "), "60 0 0 0 null")
		same(t, "the time it took", time.Since(now), AgeTimeout)
		if want := map[TopicPartition]int64{tp("a", 0): 15, tp("a", 2): 10, tp("a", 3): 19, tp("a", 4): 19}; !maps.Equal(f.from, want) {
			t.Errorf("it asked for %v, want %v", f.from, want)
		}

		f.slow, f.err = false, errors.New("broken")
		if err := l.AddLagSeconds(t.Context(), g, now); err != f.err {
			t.Errorf("the error is %v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.AddLagSeconds(ended, g, now); !errors.Is(err, context.Canceled) {
			t.Errorf("the error of a context that has ended is %v", err)
		}
		g.KeepLagging()
		f.from, g.Partitions = nil, g.Partitions[:0]
		if err := l.AddLagSeconds(t.Context(), g, now); err != nil || f.from != nil {
			t.Errorf("without lag it asks for %v, %v", f.from, err)
		}
	})
}

func TestNamesOfMembers(t *testing.T) {
	for id, want := range map[string]string{
		"a-b-5f0c7d7e-8a04-4b8e-9d2f-1c2f3b4a5d6e": "a-b-5f0c7d7e",
		"5f0c7d7e-8a04-4b8e-9d2f-1c2f3b4a5d6e":     "5f0c7d7e-8a04-4b8e-9d2f-1c2f3b4a5d6e",
		"x":                                        "x",
		"":                                         "",
	} {
		same(t, "the short name", ShortMember(id), want)
	}
	one, two, static := "a-5f0c7d7e-8a04-4b8e-9d2f-1c2f3b4a5d6e", "a-5f0c7d7e-8a04-4b8e-9d2f-000000000000", "worker-7"
	g := &Group{Members: []Member{{ID: one}, {ID: two}, {ID: "x", Instance: &static, Host: "h"}, {ID: "y"}}}
	if got, want := g.ShortNames(), map[string]string{one: one, two: two, "x": "worker-7", "y": "y"}; !maps.Equal(got, want) {
		t.Errorf("the names are %v, want %v", got, want)
	}
	same(t, "a static member", g.MemberName("x"), "worker-7 at h")
	same(t, "one that is gone", g.MemberName(one+"0"), one+"0")
	g.Partitions = []Partition{{Topic: "a"}, {Topic: "a", Partition: 1}, {Topic: "b"}}
	if got := g.Topics(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the topics are %v", got)
	}
}

// The names are what muster groups describe --json prints.
func TestGroupsInJSON(t *testing.T) {
	d := Description{Group: Group{State: Stable, ProtocolType: Consumer, Members: []Member{consumer("m", "a", 0)}}, Committed: map[TopicPartition]Commit{tp("a", 0): {Offset: 15}}}
	g := loadOne(t, &facts{groups: map[string]Description{"g": d}, logs: map[string]Log{"a": log(20)}}, "g")
	got, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the group", string(got), `{"name":"g","type":"classic","state":"Stable","protocol_type":"consumer","assignor":"","coordinator":null,`+
		`"members":[{"member_id":"m","client_id":"m","host":"10.0.0.1","instance_id":null,"topics":["a"],"assigned":[{"topic":"a","partitions":[0]}]}],`+
		`"partitions":[{"topic":"a","partition":0,"committed":15,"log_start_offset":10,"log_end_offset":20,"lag":5,"lag_seconds":null,"owner":"m"}],`+
		`"total_lag":5,"uncommitted_partitions":0}`)
}

// Of a consumer group the broker tells who has what in every state; Assigning and
// Reconciling are its rebalance.
func TestConsumerGroupsTellWhoHasWhatWhileTheyReconcile(t *testing.T) {
	for state, rebalances := range map[string]bool{Stable: false, Empty: false, Assigning: true, Reconciling: true} {
		d := Description{Group: Group{Type: TypeConsumer, State: state, ProtocolType: Consumer, Members: []Member{consumer("m", "a", 0)}}}
		g := loadOne(t, &facts{groups: map[string]Description{"g": d}, logs: map[string]Log{"a": log(20)}}, "g")
		if owners := g.Owners(); owners[tp("a", 0)] != "m" || g.Partitions[0].Owner == nil {
			t.Errorf("%s: owners are %v", state, owners)
		}
		if g.Rebalances() != rebalances {
			t.Errorf("%s: rebalances is %t", state, g.Rebalances())
		}
	}
}

// A count is taken a moment before or after the bounds. If these say that nothing is left,
// nothing is.
func TestBoundsAreRightWhereACountIsOld(t *testing.T) {
	for _, c := range []struct {
		committed, want int64
		atLeast         bool
	}{{100, 0, false}, {120, 0, false}, {99, 7, true}} {
		p := Partition{Committed: &c.committed}
		p.setLag(Bounds{10, 100}, &Count{Records: 7, AtLeast: true})
		if *p.Lag != c.want || p.LagAtLeast != c.atLeast || (p.LagSeconds != nil) != (c.want == 0) {
			t.Errorf("committed %d: lag %d, at least %t", c.committed, *p.Lag, p.LagAtLeast)
		}
	}
}
