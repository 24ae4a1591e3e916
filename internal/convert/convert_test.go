package convert

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
	"muster/internal/metadata"
)

// What has an offset take the place of another passes by all that is asked of a member.
func TestClientsCannotReplaceOffsets(t *testing.T) {
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = 7
	machine.Replaces(3).Set(&p.UnknownTags)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "orders", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	New(Options{}).Commits(t.Context(), &metadata.Image{}, req)
	got := &req.Topics[0].Partitions[0]
	if r := machine.ReplacesOf(&got.UnknownTags); r != machine.NoReplaces || got.Offset != 7 {
		t.Errorf("offset %d replaces %d", got.Offset, r)
	}
}

func TestOneConversionOfATopicAtATime(t *testing.T) {
	var cs runs
	now := time.Unix(1_700_000_000, 0)
	begin := func(topic, id string, want bool) func() {
		t.Helper()
		end, ok := cs.begin(topic, id, func() time.Time { return now })
		if ok != want {
			t.Errorf("run %s of topic %s begins: %t", id, topic, ok)
		}
		return end
	}
	first, again := begin("a", "1", true), begin("a", "1", true)
	begin("a", "2", false)
	begin("b", "2", true)()
	first()
	now = now.Add(2 * pause)
	begin("a", "2", false) // A step of it is still being taken.
	again()
	begin("a", "2", false)
	now = now.Add(pause)
	begin("a", "2", false)
	now = now.Add(time.Millisecond)
	begin("a", "2", true)()
	if len(cs.all) != 1 {
		t.Errorf("%d conversions are kept", len(cs.all))
	}
}
