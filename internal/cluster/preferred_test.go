package cluster

import (
	"math/rand/v2"
	"slices"
	"testing"

	"muster/internal/assert"
	"muster/internal/metadata"
)

// TestGivenPartitionsAreWhereTheyWereGivenAndTheOthersSpread lets brokers come, go and be
// drained at random, after some partitions were given to some of them.
func TestGivenPartitionsAreWhereTheyWereGivenAndTheOthersSpread(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 11))
		edit := emptyImage().Edit()
		for id := range int32(4) {
			edit.PutBroker(metadata.Broker{ID: id})
		}
		topic := newTopic(edit.Image(), "a", 1+rng.IntN(30))
		for range rng.IntN(len(topic.Partitions) + 1) {
			topic.Preferred = append(topic.Preferred, int32(rng.IntN(6))-1)
		}
		edit.PutTopic(topic)
		image := edit.Image()
		for range 30 {
			edit := image.Edit()
			id := int32(rng.IntN(6))
			switch {
			case rng.IntN(3) == 0:
				edit.SetBrokerConfig(map[string]string{metadata.DrainedSetting: []string{"", "0", "1,2"}[rng.IntN(3)]})
			case image.Broker(id) == nil:
				edit.PutBroker(metadata.Broker{ID: id})
			case len(image.Brokers) > 1:
				edit.RemoveBroker(id)
			}
			before := edit.Image().Topic("a")
			_ = assign(edit, metadata.NoBroker)
			wantGiven(t, edit.Image(), before, edit.Image().Topic("a"))
			assert.MustTrue(t, len(assign(edit, metadata.NoBroker)) == 0, "seed %d: assigned again, something moves", seed)
			image = edit.Image()
		}
	}
}

func wantGiven(t *testing.T, image *metadata.Image, before, after *metadata.Topic) {
	t.Helper()
	free := map[int32]int{}
	for i, p := range after.Partitions {
		was := before.Partitions[i]
		if p.Leader != was.Leader && p.LeaderEpoch != was.LeaderEpoch+1 || p.Leader == was.Leader && p != was {
			t.Fatalf("partition %d went from %+v to %+v", i, was, p)
		}
		if i < len(after.Preferred) && after.Preferred[i] != metadata.NoBroker && image.MayLead(after.Preferred[i]) {
			if p.Leader != after.Preferred[i] {
				t.Fatalf("partition %d was given to %d and is led by %d", i, after.Preferred[i], p.Leader)
			}
			continue
		}
		free[p.Leader]++
	}
	var counts []int
	for _, b := range image.MayLeadAll() {
		counts = append(counts, free[b.ID])
		delete(free, b.ID)
	}
	assert.MustTrue(t, len(free) == 0 && slices.Max(counts)-slices.Min(counts) <= 1, "the others are spread as %v, and %v where none may be", counts, free)
}
