package group

import (
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// A successor that knew the generation without the offsets would let members go on from
// where they were; one that knew the offsets without the generation would take commits of the
// one before.
func TestOffsetsOfAResetAreInTheBatchThatStoresTheGeneration(t *testing.T) {
	for what, assigned := range map[string]bool{"assigned": true, "empty": false} {
		s := newScenario(t)
		s.group(&datadriven.TestData{CmdArgs: []datadriven.CmdArg{{Key: "a"}}})
		ask := kmsg.NewPtrOffsetCommitRequest()
		ask.Version, ask.Group, ask.Generation = 9, "g", -1
		ask.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: 0, Offset: 2}, {Partition: 1, Offset: 3}}}}
		journal.ResetAsk{Plan: "r1"}.Set(&ask.UnknownTags)
		s.request("admin", ask)
		before := len(s.log)
		if assigned {
			s.join(&datadriven.TestData{CmdArgs: []datadriven.CmdArg{{Key: "a"}}})
			s.sync(&datadriven.TestData{CmdArgs: []datadriven.CmdArg{{Key: "a"}, {Key: "generation", Vals: []string{"2"}}, {Key: "assign", Vals: []string{"$a=t:0"}}}})
		} else {
			s.leave(&datadriven.TestData{CmdArgs: []datadriven.CmdArg{{Key: "a"}}})
		}
		var offsets, generations int
		for _, b := range s.log[before:] {
			o := countRecords(&b, func(r machine.Record) bool { _, is := r.(*schema.OffsetRecord); return is })
			g := countRecords(&b, func(r machine.Record) bool { x, is := r.(*schema.GroupRecord); return is && x.Value.Generation == 2 })
			if o > 0 && (o != 2 || g != 1 || !b.Whole) {
				t.Errorf("%s: a batch has %d offsets and %d generations, and is whole: %t", what, o, g, b.Whole)
			}
			offsets, generations = offsets+o, generations+g
		}
		if offsets != 2 || generations != 1 {
			t.Errorf("%s: %d offsets and %d generations are stored", what, offsets, generations)
		}
	}
}

func countRecords(b *machine.Batch, which func(machine.Record) bool) (n int) {
	for _, r := range b.Records {
		if which(r) {
			n++
		}
	}
	return n
}

// What waits for a reset is of this life of the coordinator: the next one tells its client
// that it is not the one, and moves nothing.
func TestAResetIsAnsweredOnce(t *testing.T) {
	s := newScenario(t)
	s.group(&datadriven.TestData{CmdArgs: []datadriven.CmdArg{{Key: "a"}}})
	ask := kmsg.NewPtrOffsetCommitRequest()
	ask.Version, ask.Group, ask.Generation = 9, "g", -1
	ask.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: 0, Offset: 2}}}}
	journal.ResetAsk{Plan: "r1"}.Set(&ask.UnknownTags)
	var answered []machine.RequestID
	step := func(e machine.Event) {
		s.Now = s.Now.Add(time.Millisecond)
		for _, r := range s.shard.Step(machine.Input{Now: s.Now, Event: e}).Replies {
			answered = append(answered, r.ID)
		}
	}
	step(machine.Request{ID: 901, Msg: ask})
	if slices.Contains(answered, 901) {
		t.Error("it is answered before it takes effect")
	}
	again := *ask
	again.UnknownTags = kmsg.Tags{}
	journal.ResetAsk{Plan: "r2", Now: true}.Set(&again.UnknownTags)
	step(machine.Request{ID: 902, Msg: &again})
	if !slices.Equal(answered, []machine.RequestID{901, 902}) {
		t.Errorf("answered are %v", answered)
	}
}
