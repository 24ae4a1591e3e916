package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"muster/internal/group/schema"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// What other shards of the broker hold counts as well.
func TestThereIsRoomForWhatOtherShardsLeave(t *testing.T) {
	cfg := DefaultConfig()
	s := NewShard(cfg)
	begin := func(group string, others int64) int16 {
		req := kmsg.NewPtrInitializeShareGroupStateRequest()
		req.GroupID = group
		topic := kmsg.InitializeShareGroupStateRequestTopic{TopicID: topicIDs["t"]}
		topic.Partitions = append(topic.Partitions, kmsg.NewInitializeShareGroupStateRequestTopicPartition())
		req.Topics = append(req.Topics, topic)
		fx := s.Step(machine.Input{Image: imageOf("t"), Others: others, Event: machine.Request{ID: 1, Msg: req}})
		return fx.Replies[0].Msg.(*kmsg.InitializeShareGroupStateResponse).Topics[0].Partitions[0].ErrorCode
	}
	if code := begin("g", cfg.MaxBytes-weightOf(Key{Group: "g"}, 0)+1); code != kerr.CoordinatorNotAvailable.Code || s.Weight() != 0 {
		t.Errorf("one too many: code %d, %d bytes", code, s.Weight())
	}
	if code := begin("g", cfg.MaxBytes-weightOf(Key{Group: "g"}, 0)); code != 0 || s.Weight() == 0 {
		t.Errorf("just enough: code %d, %d bytes", code, s.Weight())
	}
}

// Every request has an answer that says that this is not the coordinator, for all that was
// asked about.
func TestEveryRequestCanFail(t *testing.T) {
	d := Definition(DefaultConfig)
	for _, req := range []kmsg.Request{
		&kmsg.InitializeShareGroupStateRequest{GroupID: "g", Topics: []kmsg.InitializeShareGroupStateRequestTopic{{TopicID: topicIDs["t"], Partitions: []kmsg.InitializeShareGroupStateRequestTopicPartition{{}, {Partition: 1}}}}},
		&kmsg.ReadShareGroupStateRequest{GroupID: "g", Topics: []kmsg.ReadShareGroupStateRequestTopic{{TopicID: topicIDs["t"], Partitions: []kmsg.ReadShareGroupStateRequestTopicPartition{{}, {Partition: 1}}}}},
		&kmsg.WriteShareGroupStateRequest{Version: 1, GroupID: "g", Topics: []kmsg.WriteShareGroupStateRequestTopic{{TopicID: topicIDs["t"], Partitions: []kmsg.WriteShareGroupStateRequestTopicPartition{{}, {Partition: 1}}}}},
		&kmsg.DeleteShareGroupStateRequest{GroupID: "g", Topics: []kmsg.DeleteShareGroupStateRequestTopic{{TopicID: topicIDs["t"], Partitions: []kmsg.DeleteShareGroupStateRequestTopicPartition{{}, {Partition: 1}}}}},
		&kmsg.ReadShareGroupStateSummaryRequest{Version: 1, GroupID: "g", Topics: []kmsg.ReadShareGroupStateSummaryRequestTopic{{TopicID: topicIDs["t"], Partitions: []kmsg.ReadShareGroupStateSummaryRequestTopicPartition{{}, {Partition: 1}}}}},
	} {
		resp := d.Fail(req, kerr.NotCoordinator)
		if got := showReply(resp); got != "t:0 NOT_COORDINATOR (16), t:1 NOT_COORDINATOR (16)" || resp.GetVersion() != req.GetVersion() {
			t.Errorf("%T: %s", req, got)
		}
		if got := showReply(d.Fail(req, nil)); !strings.HasPrefix(got, "t:0 OK") {
			t.Errorf("%T: %s", req, got)
		}
		if d.NeedsRandom(req) {
			t.Errorf("%T needs random bytes", req)
		}
	}
	if d.Fail(kmsg.NewPtrHeartbeatRequest(), kerr.NotCoordinator) == nil {
		t.Error("a request of another kind has no answer")
	}
	if _, err := d.Decode([]byte{0, 9}, nil); !errors.Is(err, machine.ErrUnknownRecord) {
		t.Errorf("a record of another kind: %v", err)
	}
}

// A request that is not for share group state is a mistake of the broker.
func TestOtherRequestsAreRefused(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a heartbeat is handled")
		}
	}()
	Definition(DefaultConfig).New().Step(machine.Input{Event: machine.Request{ID: 1, Msg: kmsg.NewPtrHeartbeatRequest()}})
}

// A sweep of many share partitions is many steps, or everything else would wait for it.
func TestASweepIsBounded(t *testing.T) {
	s := NewShard(DefaultConfig())
	id := topicIDs["t"]
	for i := range int64(2*maxSweep + 10) {
		v := &schema.ShareSnapshot{Start: i, Completed: -1}
		s.Replay(machine.Stored{Records: []machine.StoredRecord{{Offset: 2 * i, Record: &schema.ShareSnapshotRecord{Group: fmt.Sprint("g", i), Topic: id, Value: v}}}})
		u := &schema.ShareUpdate{LeaderEpoch: 1, Start: i + 1, Completed: -1}
		s.Replay(machine.Stored{Records: []machine.StoredRecord{{Offset: 2*i + 1, Record: &schema.ShareUpdateRecord{Group: fmt.Sprint("g", i), Topic: id, Value: u}}}})
	}
	now := time.Unix(1_700_000_000, 0)
	in := machine.Input{Now: now, Image: imageOf("t"), Event: machine.Loaded{}}
	fx := s.Step(in)
	prune := fx.Timers[1]
	var sizes []int
	for range 4 {
		tm := fx.Timers[0]
		in.Now, in.Event = tm.At, machine.TimerFired{Key: tm.Key, Seq: tm.Seq}
		fx = s.Step(in)
		n := 0
		for _, b := range fx.Batches {
			n += len(b.Records)
			s.Step(machine.Input{Now: in.Now, Event: machine.Appended{Tag: b.Tag, Offset: s.end}})
		}
		sizes = append(sizes, n)
	}
	if want := []int{maxSweep, maxSweep, 10, 0}; !slices.Equal(sizes, want) {
		t.Errorf("snapshots: %v, want %v", sizes, want)
	}
	in.Now, in.Event = prune.At, machine.TimerFired{Key: prune.Key, Seq: prune.Seq}
	if fx = s.Step(in); len(fx.Notes) == 0 {
		t.Error("nothing is pruned")
	}
	if want := []machine.Note{Prune{4*maxSweep + 20}}; !slices.Equal(fx.Notes, want) {
		t.Errorf("notes %v, want %v", fx.Notes, want)
	}
	// Stale ones are ignored.
	for _, kind := range []string{TimerSweep, TimerPrune} {
		in.Event = machine.TimerFired{Key: machine.TimerKey{Kind: kind}, Seq: s.armed[kind] - 1}
		if fx := s.Step(in); len(fx.Timers) > 0 {
			t.Errorf("a stale timer of %s fires", kind)
		}
	}
}

// A snapshot that does not fit is not written, and does not keep others from it.
func TestWhatDoesNotFitIsNotSwept(t *testing.T) {
	s := newScenario(t)
	for _, g := range []string{"g", "h"} {
		runs := []Run{{First: 1, Last: 1}}
		for o := int64(3); o < 99 && g == "g"; o += 2 {
			runs = append(runs, Run{First: o, Last: o})
		}
		for i, r := range []machine.Record{
			&schema.ShareSnapshotRecord{Group: g, Topic: topicIDs["t"], Value: &schema.ShareSnapshot{Completed: -1, Runs: runs}},
			&schema.ShareUpdateRecord{Group: g, Topic: topicIDs["t"], Value: &schema.ShareUpdate{Completed: -1}},
		} {
			s.log = append(s.log, machine.StoredRecord{Offset: int64(i), Record: r})
		}
	}
	s.maxBatch, s.next = 300, 2
	s.load()
	s.Pass(6 * time.Minute)
	if got := s.Out.String(); strings.Contains(got, "g/t") || !strings.Contains(got, "h/t:0 snapshot 1") {
		t.Error(got)
	}
}

// Whatever a log has, it can be loaded, and what is known of offsets is in order.
func TestReplayIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewShard(DefaultConfig())
		for i := range rapid.IntRange(1, 12).Draw(t, "records") {
			runs := draw(t, 4)
			if rapid.Bool().Draw(t, "reversed") {
				runs = append(runs, Run{First: 7, Last: 3})
			}
			epoch, start := rapid.Int32Range(0, 2).Draw(t, "epoch"), rapid.Int64Range(-1, 20).Draw(t, "start")
			var r machine.Record = &schema.ShareSnapshotRecord{Group: "g", Value: &schema.ShareSnapshot{SnapshotEpoch: epoch, Start: start, Runs: runs, Completed: -1}}
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				r = &schema.ShareSnapshotRecord{Group: "g"}
			case 1:
				r = &schema.ShareUpdateRecord{Group: "g"}
			case 2, 3:
				r = &schema.ShareUpdateRecord{Group: "g", Value: &schema.ShareUpdate{SnapshotEpoch: epoch, LeaderEpoch: -1, Start: start, Runs: runs, Completed: -1}}
			}
			s.Replay(machine.Stored{Records: []machine.StoredRecord{{Offset: int64(i), Record: r}}})
			if err := s.CheckInvariants(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An update counts only after the snapshot that it names: an earlier one is in that already.
func TestUpdatesOfOtherSnapshotsAreIgnored(t *testing.T) {
	s := NewShard(DefaultConfig())
	k := Key{Group: "g"}
	update := func(epoch int32, start int64) {
		s.apply(&schema.ShareUpdateRecord{Group: "g", Value: &schema.ShareUpdate{SnapshotEpoch: epoch, LeaderEpoch: -1, Start: start, Completed: -1}}, 9)
	}
	update(0, 1)
	s.apply(&schema.ShareSnapshotRecord{Group: "g", Value: &schema.ShareSnapshot{SnapshotEpoch: 2, Start: 4, Completed: 3}}, 9)
	update(1, 5)
	update(3, 6)
	if p := s.all[k]; p.Start != 4 || p.updates != 0 {
		t.Errorf("%+v", p)
	}
	update(2, 7)
	if p := s.all[k]; p.Start != 7 || p.updates != 1 || p.Completed != 3 {
		t.Errorf("%+v", p)
	}
}

// Without metadata no one knows that a topic is gone: nothing is deleted, and nothing is said.
func TestNothingIsDeletedWithoutMetadata(t *testing.T) {
	s := newScenario(t)
	s.log = []machine.StoredRecord{{Record: &schema.ShareSnapshotRecord{Group: "g", Topic: topicIDs["t"], Value: &schema.ShareSnapshot{}}}}
	s.image = nil
	s.load()
	if len(s.shard.all) != 1 {
		t.Error("it is deleted")
	}
	if err := (&step{Shard: s.shard}).exists(Key{Group: "g", Topic: topicIDs["t"]}); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("%v", err)
	}
}

// What the checks find is found, and what differs has another digest.
func TestInvariantsCanFail(t *testing.T) {
	for name, p := range map[string]state{
		"an epoch":      {ShareSnapshot: schema.ShareSnapshot{LeaderEpoch: -1}},
		"a later one":   {at: 5},
		"a pruned one":  {at: 1},
		"order":         {ShareSnapshot: schema.ShareSnapshot{Runs: []Run{{First: 3, Last: 4}, {First: 2, Last: 2}}}},
		"alike":         {ShareSnapshot: schema.ShareSnapshot{Runs: []Run{{First: 3, Last: 4}, {First: 5, Last: 5}}}},
		"below a start": {ShareSnapshot: schema.ShareSnapshot{Start: 4, Runs: []Run{{First: 3, Last: 4}}}},
		"no offsets":    {ShareSnapshot: schema.ShareSnapshot{Runs: []Run{{First: 3, Last: 2}}}},
	} {
		if p.at == 0 {
			p.at = unknown
		}
		s := &Shard{all: map[Key]*state{{Group: "g"}: &p}, end: 5, pruned: 2}
		if s.CheckInvariants() == nil {
			t.Errorf("%s is not found", name)
		}
	}
	digests := map[uint64]string{}
	for name, s := range map[string]*Shard{
		"nothing":     {},
		"one":         {all: map[Key]*state{{Group: "g"}: {}}},
		"a topic":     {all: map[Key]*state{{Group: "g", Topic: metadata.TopicID{1}}: {}}},
		"a partition": {all: map[Key]*state{{Group: "g", Partition: 1}: {}}},
		"updates":     {all: map[Key]*state{{Group: "g"}: {updates: 1}}},
		"a run":       {all: map[Key]*state{{Group: "g"}: {ShareSnapshot: schema.ShareSnapshot{Runs: []Run{{First: 3, Last: 4}}}}}},
	} {
		if other, ok := digests[s.Digest()]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		digests[s.Digest()] = name
	}
}
