package cluster

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

func emptyImage() *metadata.Image { return metadata.NewImage(&config.Broker{}) }

// led counts the partitions of a topic by leader.
func led(t *metadata.Topic) map[int32]int {
	out := map[int32]int{}
	for _, p := range t.Partitions {
		out[p.Leader]++
	}
	return out
}

// wantBalance demands that every broker leads its share of a topic.
func wantBalance(t *testing.T, image *metadata.Image, topic *metadata.Topic) {
	t.Helper()
	counts, share := led(topic), len(topic.Partitions)/len(image.Brokers)
	total := 0
	for _, b := range image.Brokers {
		n := counts[b.ID]
		total += n
		assert.MustTrue(t, n >= share && n <= share+1, "%d partitions of %s on %d brokers: %v", len(topic.Partitions), topic.Name, len(image.Brokers), counts)
	}
	assert.MustEqual(t, total, len(topic.Partitions), "some partitions of %s are led by nobody there: %v", topic.Name, counts)
}

func newTopic(image *metadata.Image, name string, n int, asked ...int32) metadata.Topic {
	t := metadata.Topic{Name: name, Internal: metadata.IsInternal(name)}
	copy(t.ID[:], name)
	for _, leader := range spreadNew(image, name, nil, n, asked) {
		t.Partitions = append(t.Partitions, metadata.Partition{Leader: leader})
	}
	return t
}

// TestLeadersAreSpreadEvenlyWithFewMoves lets brokers come and go at random.
func TestLeadersAreSpreadEvenlyWithFewMoves(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		image := emptyImage()
		for step := range 40 {
			edit := image.Edit()
			id := int32(1 + rng.IntN(8))
			leaves := image.Broker(id) != nil
			switch {
			case leaves && len(image.Brokers) > 1:
				edit.RemoveBroker(id)
			case leaves:
				continue
			default:
				edit.PutBroker(metadata.Broker{ID: id})
			}
			if step < 10 {
				edit.PutTopic(newTopic(edit.Image(), fmt.Sprint("topic-", step), 1+rng.IntN(40)))
			}
			before := edit.Image()
			_ = assign(edit, metadata.NoBroker)
			for _, topic := range edit.Image().Topics() {
				wantBalance(t, edit.Image(), topic)
				wantFewMoves(t, image, before.Topic(topic.Name), topic, id, leaves)
			}
			image = edit.Image()
		}
	}
}

// wantFewMoves demands that no more partitions move than must when a broker
// comes or goes: those of who left, or those that who came gets.
func wantFewMoves(t *testing.T, image *metadata.Image, before, after *metadata.Topic, id int32, left bool) {
	t.Helper()
	old := image.Topic(before.Name)
	if old == nil {
		return
	}
	moved := 0
	for i, p := range after.Partitions {
		switch was := old.Partitions[i]; {
		case p.Leader != was.Leader && p.LeaderEpoch != was.LeaderEpoch+1, p.Leader == was.Leader && p != was:
			t.Fatalf("partition %d went from %+v to %+v", i, was, p)
		case p.Leader != was.Leader:
			moved++
		}
	}
	want := len(old.Partitions) / (len(image.Brokers) + 1)
	if left {
		want = led(old)[id]
	}
	if moved != want {
		t.Fatalf("broker %d left: %v. %d of %d partitions moved, which is more than %d: from %v to %v", id, left, moved, len(old.Partitions), want, led(old), led(after))
	}
}

func TestLeadersAreTheSameForAllWhoComputeThem(t *testing.T) {
	image := emptyImage()
	edit := image.Edit()
	for _, id := range []int32{4, 2, 9} {
		edit.PutBroker(metadata.Broker{ID: id})
	}
	edit.PutTopic(newTopic(edit.Image(), "a", 30))
	edit.PutTopic(newTopic(edit.Image(), "b", 9))
	image = edit.Image()
	next := func() *metadata.Image {
		edit := image.Edit()
		edit.RemoveBroker(9)
		edit.PutBroker(metadata.Broker{ID: 1})
		_ = assign(edit, 1)
		return edit.Image()
	}
	if a, b := next(), next(); !reflect.DeepEqual(a.Topics(), b.Topics()) {
		t.Errorf("%v\n%v", a.Topics(), b.Topics())
	}
}

// TestFirstPartitionsAreSpread has no share to go by, only hashes: many topics
// have one partition, or one that has more to do than the others.
func TestFirstPartitionsAreSpread(t *testing.T) {
	edit := emptyImage().Edit()
	for id := range int32(3) {
		edit.PutBroker(metadata.Broker{ID: id})
	}
	for _, n := range []int{1, 3} {
		counts := map[int32]int{}
		for i := range 300 {
			counts[newTopic(edit.Image(), fmt.Sprint("topic-", i), n).Partitions[0].Leader]++
		}
		for id := range int32(3) {
			assert.True(t, counts[id] >= 60 && counts[id] <= 140, "300 topics on three brokers: %v", counts)
		}
	}
}

func TestAJournalIsLedWithWhatItTellsOf(t *testing.T) {
	for topic, of := range map[string]string{metadata.JournalTopic: metadata.OffsetsTopic, metadata.TransactionJournalTopic: metadata.TransactionsTopic} {
		t.Run(topic, func(t *testing.T) { journalIsLedWith(t, topic, of) })
	}
}

func journalIsLedWith(t *testing.T, topic, of string) {
	edit := emptyImage().Edit()
	for id := range int32(3) {
		edit.PutBroker(metadata.Broker{ID: id})
	}
	edit.PutTopic(newTopic(edit.Image(), of, 50))
	edit.PutTopic(newTopic(edit.Image(), topic, 50))
	for step, change := range []func(){
		func() {},
		func() { edit.RemoveBroker(1) },
		func() { edit.PutBroker(metadata.Broker{ID: 7}) },
		func() { edit.PutBroker(metadata.Broker{ID: 8}) },
	} {
		change()
		recs := assign(edit, metadata.NoBroker)
		assert.False(t, step == 0 && len(recs) > 0, "they were not, when they were made")
		groups, journal := edit.Image().Topic(of), edit.Image().Topic(topic)
		wantBalance(t, edit.Image(), groups)
		for i := range groups.Partitions {
			if groups.Partitions[i].Leader != journal.Partitions[i].Leader {
				t.Errorf("partition %d: %+v and %+v", i, groups.Partitions[i], journal.Partitions[i])
			}
		}
	}
}

func TestLeadersThatAreAskedForAreTaken(t *testing.T) {
	edit := emptyImage().Edit()
	for id := range int32(3) {
		edit.PutBroker(metadata.Broker{ID: id})
	}
	topic := newTopic(edit.Image(), "a", 5, 2, 2, 2, 9)
	if got := topic.Partitions; got[0].Leader != 2 || got[1].Leader != 2 || got[2].Leader != 2 || got[3].Leader == 9 || led(&topic)[metadata.NoBroker] != 0 {
		t.Errorf("asked for 2, 2, 2 and a broker that is not there: %v", got)
	}
	grown := spreadNew(edit.Image(), "a", topic.Partitions, 8, []int32{0, 0})
	for i, p := range topic.Partitions {
		if grown[i] != p.Leader {
			t.Errorf("partition %d moved from %d to %d", i, p.Leader, grown[i])
		}
	}
	assert.True(t, slices.Equal(grown[5:7], []int32{0, 0}) && grown[7] != metadata.NoBroker, "grown to %v", grown)
}

func TestABrokerThatWasStartedAgainGetsHigherEpochs(t *testing.T) {
	edit := emptyImage().Edit()
	edit.PutBroker(metadata.Broker{ID: 1})
	edit.PutBroker(metadata.Broker{ID: 2})
	edit.PutTopic(newTopic(edit.Image(), "a", 4))
	_ = assign(edit, 1)
	for i, p := range edit.Image().Topic("a").Partitions {
		assert.Equal(t, p.LeaderEpoch, 2-p.Leader, "partition %d: %+v", i, p)
	}
}
