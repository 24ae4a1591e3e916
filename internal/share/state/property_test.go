package state

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"muster/internal/group/schema"
	"muster/internal/harness"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// said is what was written of an offset.
type said struct {
	count int16
	state int8
}

func draw(t *rapid.T, most int) (runs []Run) {
	for range rapid.IntRange(0, most).Draw(t, "runs") {
		first := rapid.Int64Range(0, 30).Draw(t, "first")
		runs = append(runs, Run{
			First: first, Last: first + rapid.Int64Range(0, 8).Draw(t, "length"),
			State: rapid.SampledFrom([]int8{0, 2, 4}).Draw(t, "state"), Count: rapid.Int16Range(0, 3).Draw(t, "count"),
		})
	}
	return runs
}

func say(all map[int64]said, runs []Run, start int64) {
	for _, r := range runs {
		for o := r.First; o <= r.Last; o++ {
			if was, ok := all[o]; !ok || r.Count > was.count || r.Count == was.count && r.State > was.state {
				all[o] = said{r.Count, r.State}
			}
		}
	}
	for o := range all {
		if o < start {
			delete(all, o)
		}
	}
}

// asRuns is what is known of offsets, as short as it can be.
func asRuns(all map[int64]said) (runs []Run) {
	for _, o := range slices.Sorted(maps.Keys(all)) {
		runs = push(runs, Run{First: o, Last: o, State: all[o].state, Count: all[o].count})
	}
	return runs
}

// What is stored is what was said of each offset, whatever the runs are that said it.
func TestMergeIsOfEachOffset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, 6), draw(t, 12)
		start := rapid.Int64Range(-1, 20).Draw(t, "start")
		want := map[int64]said{}
		say(want, a, start)
		say(want, b, start)
		before := slices.Clone(b)
		if got := merge(ordered(a), ordered(b), start); !slices.Equal(got, asRuns(want)) {
			t.Fatalf("%v and %v from %d are %v, want %v", a, b, start, got, asRuns(want))
		}
		if !slices.Equal(b, before) {
			t.Fatal("what was given is changed")
		}
	})
}

// known is a share partition as it should be.
type known struct {
	state, leader int32
	start         int64
	completed     int32
	offsets       map[int64]said
	begun         int64 // where in the log
}

// world is brokers, log and clock around a shard.
type world struct {
	shard, twin *Shard // get the same inputs, and must do the same
	cfg         Config
	now         time.Time
	log         []machine.StoredRecord
	next        int64
	image       *metadata.Image
	timers      map[machine.TimerKey]machine.Timer
	asked       map[machine.RequestID]kmsg.Request
	last        machine.RequestID
	told        []machine.Appended
	answer      kmsg.Response
	want        map[Key]*known
}

func (w *world) load(t *rapid.T) {
	w.shard, w.twin, w.timers, w.told = NewShard(w.cfg), NewShard(w.cfg), map[machine.TimerKey]machine.Timer{}, nil
	for _, s := range []*Shard{w.shard, w.twin} {
		s.Replay(machine.Stored{Records: w.log})
	}
	w.step(t, machine.Loaded{})
}

func (w *world) step(t *rapid.T, e machine.Event) {
	in := machine.Input{Now: w.now, Image: w.image, Event: e}
	fx := w.shard.Step(in)
	w.twin.Step(in)
	for _, b := range fx.Batches {
		if b.Tag != 0 {
			w.told = append(w.told, machine.Appended{Tag: b.Tag, Offset: w.next})
		}
		for _, r := range b.Records {
			again, err := schema.DecodeShare(r.Encode())
			if err != nil {
				t.Fatal(err)
			}
			w.log = append(w.log, machine.StoredRecord{Offset: w.next, Record: again})
			w.next++
		}
	}
	for _, n := range machine.NotesOf[Prune](fx.Notes) {
		w.log = slices.DeleteFunc(w.log, func(r machine.StoredRecord) bool { return r.Offset < n.Before })
	}
	for _, r := range fx.Replies {
		_, w.answer = harness.Answered(t, w.asked, r)
	}
	harness.Arm(w.timers, fx.Timers)
}

func (w *world) ask(t *rapid.T, m kmsg.Request) kmsg.Response {
	w.last++
	w.asked[w.last] = harness.OnTheWire(t, m)
	w.step(t, machine.Request{ID: w.last, Msg: w.asked[w.last]})
	if len(w.asked) > 0 {
		t.Fatalf("%T is not answered", m)
	}
	return w.answer
}

func (w *world) key(t *rapid.T) Key {
	return Key{
		Group: rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group"), Topic: topicIDs[rapid.SampledFrom([]string{"t", "u"}).Draw(t, "topic")],
		Partition: rapid.Int32Range(0, 1).Draw(t, "partition"),
	}
}

// gone says whether the topic is.
func (w *world) gone(k Key) bool { return w.image.TopicByID(k.Topic) == nil }

func (w *world) initialize(t *rapid.T) {
	k := w.key(t)
	p := kmsg.InitializeShareGroupStateRequestTopicPartition{Partition: k.Partition, StateEpoch: rapid.Int32Range(0, 4).Draw(t, "state epoch"), StartOffset: rapid.Int64Range(-1, 9).Draw(t, "start")}
	m := &kmsg.InitializeShareGroupStateRequest{GroupID: k.Group, Topics: []kmsg.InitializeShareGroupStateRequestTopic{{TopicID: k.Topic, Partitions: []kmsg.InitializeShareGroupStateRequestTopicPartition{p}}}}
	want := int16(0)
	switch was := w.want[k]; {
	case w.gone(k):
		want = 3
	case was != nil && was.state > p.StateEpoch:
		want = 124
	case was != nil && was.state == p.StateEpoch && (p.StartOffset < 0 || p.StartOffset == was.start):
	case was != nil && was.state == p.StateEpoch && w.isWritten(k, was.begun):
		want = 124
	default:
		is := &known{state: p.StateEpoch, start: p.StartOffset, completed: -1, offsets: map[int64]said{}, begun: w.next}
		if is.start >= 0 {
			is.completed = 0
		}
		if was != nil {
			is.leader = was.leader
		}
		w.want[k] = is
	}
	if got := w.ask(t, m).(*kmsg.InitializeShareGroupStateResponse).Topics[0].Partitions[0]; got.ErrorCode != want || got.Partition != k.Partition {
		t.Fatalf("%v: %+v, want %d", k, got, want)
	}
}

// isWritten says whether there is a record of a share partition behind the one that began it.
func (w *world) isWritten(k Key, begun int64) bool {
	return slices.ContainsFunc(w.log, func(r machine.StoredRecord) bool {
		if r.Offset <= begun {
			return false
		}
		switch r := r.Record.(type) {
		case *schema.ShareSnapshotRecord:
			return k == Key{Group: r.Group, Topic: r.Topic, Partition: r.Partition}
		case *schema.ShareUpdateRecord:
			return k == Key{Group: r.Group, Topic: r.Topic, Partition: r.Partition}
		}
		return false
	})
}

// refused is the error for a leader; 0 if there is none.
func (w *world) refused(k Key, leader int32) int16 {
	switch is := w.want[k]; {
	case w.gone(k):
		return 3
	case is == nil:
		return 42
	case leader >= 0 && leader < is.leader:
		return 74
	}
	return 0
}

func (w *world) write(t *rapid.T) {
	k := w.key(t)
	p := kmsg.WriteShareGroupStateRequestTopicPartition{
		Partition: k.Partition, StateEpoch: rapid.Int32Range(-1, 3).Draw(t, "state epoch"), LeaderEpoch: rapid.Int32Range(-1, 3).Draw(t, "leader epoch"),
		StartOffset: rapid.Int64Range(-1, 20).Draw(t, "start"), DeliveryCompleteCount: rapid.Int32Range(-1, 5).Draw(t, "completed"),
	}
	is := w.want[k]
	if is != nil && rapid.Bool().Draw(t, "right") {
		p.StateEpoch, p.LeaderEpoch = is.state, is.leader
	}
	runs := draw(t, 4)
	for _, r := range runs {
		p.StateBatches = append(p.StateBatches, kmsg.WriteShareGroupStateRequestTopicPartitionStateBatch{FirstOffset: r.First, LastOffset: r.Last, DeliveryState: r.State, DeliveryCount: r.Count})
	}
	want := w.refused(k, p.LeaderEpoch)
	switch {
	case want != 0:
	case p.StateEpoch >= 0 && p.StateEpoch < is.state:
		want = 124
	case p.StateEpoch > is.state && p.StartOffset < 0:
		want = 42
	case p.StateEpoch > is.state:
		is = &known{state: p.StateEpoch, leader: max(is.leader, p.LeaderEpoch), start: p.StartOffset, completed: p.DeliveryCompleteCount, offsets: map[int64]said{}, begun: w.next - 1}
		say(is.offsets, runs, is.start)
		w.want[k] = is
	default:
		is.leader, is.start = max(is.leader, p.LeaderEpoch), max(is.start, p.StartOffset)
		if p.DeliveryCompleteCount >= 0 {
			is.completed = p.DeliveryCompleteCount
		}
		say(is.offsets, runs, is.start)
	}
	m := &kmsg.WriteShareGroupStateRequest{Version: 1, GroupID: k.Group, Topics: []kmsg.WriteShareGroupStateRequestTopic{{TopicID: k.Topic, Partitions: []kmsg.WriteShareGroupStateRequestTopicPartition{p}}}}
	if got := w.ask(t, m).(*kmsg.WriteShareGroupStateResponse).Topics[0].Partitions[0]; got.ErrorCode != want || got.Partition != k.Partition {
		t.Fatalf("%v: %+v is answered %d, want %d", k, p, got.ErrorCode, want)
	}
}

func (w *world) read(t *rapid.T) {
	k := w.key(t)
	leader := rapid.Int32Range(-1, 3).Draw(t, "leader epoch")
	want := w.refused(k, leader)
	m := &kmsg.ReadShareGroupStateRequest{GroupID: k.Group, Topics: []kmsg.ReadShareGroupStateRequestTopic{{TopicID: k.Topic, Partitions: []kmsg.ReadShareGroupStateRequestTopicPartition{{Partition: k.Partition, LeaderEpoch: leader}}}}}
	got := w.ask(t, m).(*kmsg.ReadShareGroupStateResponse).Topics[0].Partitions[0]
	if got.ErrorCode != want || got.Partition != k.Partition {
		t.Fatalf("%v: %+v, want %d", k, got, want)
	}
	if want != 0 {
		return
	}
	is := w.want[k]
	is.leader = max(is.leader, leader)
	var runs []Run
	for _, b := range got.StateBatches {
		runs = append(runs, Run{First: b.FirstOffset, Last: b.LastOffset, State: b.DeliveryState, Count: b.DeliveryCount})
	}
	if got.StateEpoch != is.state || got.StartOffset != is.start || !slices.Equal(runs, asRuns(is.offsets)) {
		t.Fatalf("%v: %+v, want %+v", k, got, is)
	}
}

func (w *world) summary(t *rapid.T) {
	k := w.key(t)
	leader := rapid.Int32Range(-1, 3).Draw(t, "leader epoch")
	want := w.refused(k, leader)
	m := &kmsg.ReadShareGroupStateSummaryRequest{Version: 1, GroupID: k.Group, Topics: []kmsg.ReadShareGroupStateSummaryRequestTopic{{TopicID: k.Topic, Partitions: []kmsg.ReadShareGroupStateSummaryRequestTopicPartition{{Partition: k.Partition, LeaderEpoch: leader}}}}}
	got := w.ask(t, m).(*kmsg.ReadShareGroupStateSummaryResponse).Topics[0].Partitions[0]
	if got.ErrorCode != want || got.Partition != k.Partition {
		t.Fatalf("%v: %+v, want %d", k, got, want)
	}
	if is := w.want[k]; want == 0 && (got.StateEpoch != is.state || got.LeaderEpoch != is.leader || got.StartOffset != is.start || got.DeliveryCompleteCount != is.completed) {
		t.Fatalf("%v: %+v, want %+v", k, got, is)
	}
}

func (w *world) remove(t *rapid.T) {
	k := w.key(t)
	want := int16(0)
	if w.gone(k) {
		want = 3
	}
	m := &kmsg.DeleteShareGroupStateRequest{GroupID: k.Group, Topics: []kmsg.DeleteShareGroupStateRequestTopic{{TopicID: k.Topic, Partitions: []kmsg.DeleteShareGroupStateRequestTopicPartition{{Partition: k.Partition}}}}}
	if got := w.ask(t, m).(*kmsg.DeleteShareGroupStateResponse).Topics[0].Partitions[0]; got.ErrorCode != want || got.Partition != k.Partition {
		t.Fatalf("%v: %+v, want %d", k, got, want)
	}
	delete(w.want, k)
}

func (w *world) wait(t *rapid.T) {
	until := w.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
	for {
		tm, ok := harness.Due(w.timers, until)
		if !ok {
			break
		}
		delete(w.timers, tm.Key)
		w.now = tm.At
		w.step(t, machine.TimerFired{Key: tm.Key, Seq: tm.Seq})
	}
	w.now = until
	if len(w.timers) != 2 {
		t.Fatalf("%d timers are armed", len(w.timers))
	}
}

// durable tells the shard where the first of its snapshots are.
func (w *world) durable(t *rapid.T) {
	for range min(len(w.told), rapid.IntRange(0, 3).Draw(t, "told")) {
		w.step(t, w.told[0])
		w.told = w.told[1:]
	}
}

func (w *world) topics(t *rapid.T) {
	w.image = imageOf("t", "u")
	var gone []string
	if rapid.Bool().Draw(t, "u is gone") {
		w.image, gone = imageOf("t"), []string{"u"}
		maps.DeleteFunc(w.want, func(k Key, _ *known) bool { return w.gone(k) })
	}
	w.step(t, machine.TopicsChanged{Topics: []string{"u"}, Gone: gone})
}

func (w *world) check(t *rapid.T) {
	if err := w.shard.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	again := NewShard(w.cfg)
	again.Replay(machine.Stored{Records: w.log})
	if d := w.shard.Digest(); again.Digest() != d || w.twin.Digest() != d {
		t.Fatal("the log, or the twin, says something else")
	}
	for k, p := range w.shard.all {
		if p.updates > w.cfg.Updates {
			t.Fatalf("%v has %d updates", k, p.updates)
		}
	}
	if len(w.shard.all) != len(w.want) {
		t.Fatalf("there are %d share partitions, want %d", len(w.shard.all), len(w.want))
	}
}

// Any sequence of requests, loads and sweeps gives what was said last, of each offset.
func TestAnySequenceKeepsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{cfg: Config{Updates: 3, Idle: 5 * time.Minute, Prune: 5 * time.Minute}, now: time.Unix(1_700_000_000, 0), image: imageOf("t", "u"), asked: map[machine.RequestID]kmsg.Request{}, want: map[Key]*known{}}
		w.load(t)
		t.Repeat(map[string]func(*rapid.T){
			"": w.check, "initialize": w.initialize, "write": w.write, "write again": w.write, "read": w.read, "summary": w.summary, "remove": w.remove,
			"wait": w.wait, "durable": w.durable, "topics": w.topics, "load": w.load,
		})
	})
}
