package exact

import (
	"context"
	"slices"
	"strconv"
	"time"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/store"
)

// The topics of this world.
const (
	inputTopic   = "in"
	outputTopic  = "out"
	sideTopic    = "side"
	offsetsTopic = metadata.OffsetsTopic
	stateTopic   = "__transaction_state"
)

var topicNames = []string{stateTopic, offsetsTopic, inputTopic, outputTopic, sideTopic}

const brokerCount = 3

// firstImage makes the metadata that the run begins with.
func (w *world) firstImage() {
	set := map[string]string{}
	if d := w.plan.expiry.producers; d > 0 {
		set["producer.id.expiration.ms"] = strconv.FormatInt(d.Milliseconds(), 10)
	}
	defaults, err := config.NewBroker(set)
	if err != nil {
		panic(err)
	}
	w.defaults = defaults
	edit := metadata.NewImage(defaults).Edit()
	edit.SetClusterID("exact")
	for i := range brokerCount {
		edit.PutBroker(metadata.Broker{ID: int32(i)})
	}
	counts := []int32{w.plan.states, w.plan.offsets, int32(len(w.plan.copiers)) + w.plan.team.shared, w.plan.outputs, w.plan.sides}
	for i, name := range topicNames {
		edit.PutTopic(w.newTopic(name, counts[i]))
	}
	w.images = []*metadata.Image{edit.Image()}
}

// newTopic returns a topic that was never there before.
func (w *world) newTopic(name string, partitions int32) metadata.Topic {
	w.topics++
	t := metadata.Topic{Name: name, ID: metadata.TopicID{14: byte(w.topics >> 8), 15: byte(w.topics)}, Internal: metadata.IsInternal(name)}
	if name == sideTopic && w.plan.retention > 0 {
		t.Set = map[string]string{"retention.ms": strconv.FormatInt(w.plan.retention.Milliseconds(), 10)}
	}
	metadata.FixSettings(&t)
	for range partitions {
		t.Partitions = append(t.Partitions, metadata.Partition{Leader: w.Rand.Int32N(brokerCount), LeaderEpoch: w.firstEpoch})
	}
	return t
}

// image is the metadata as it is.
func (w *world) image() *metadata.Image { return w.images[len(w.images)-1] }

// someImage is the metadata as someone may believe it to be.
func (w *world) someImage() *metadata.Image {
	if w.Chance(w.faults().stale) {
		return w.images[w.Rand.IntN(len(w.images))]
	}
	return w.image()
}

// leaderOf is the broker that leads a partition, as an image has it.
func leaderOf(i *metadata.Image, tp store.TopicPartition) int32 {
	if t := i.Topic(tp.Topic); t != nil {
		return t.Partitions[tp.Partition].Leader
	}
	return metadata.NoBroker
}

// leads says whether a broker truly leads a partition under an epoch.
func (w *world) leads(b *broker, tp store.TopicPartition, epoch int32) bool {
	return w.image().Topic(tp.Topic).Partitions[tp.Partition] == metadata.Partition{Leader: b.id, LeaderEpoch: epoch}
}

// partitions lists all partitions, in order.
func (w *world) partitions() []store.TopicPartition {
	var out []store.TopicPartition
	for _, name := range topicNames {
		t := w.image().Topic(name)
		if t == nil {
			continue
		}
		for i := range t.Partitions {
			out = append(out, store.TopicPartition{Topic: name, Partition: int32(i)})
		}
	}
	return out
}

// elect gives partitions a leader and a higher epoch.
func (w *world) elect(leaders map[store.TopicPartition]int32) {
	if len(leaders) == 0 {
		return
	}
	edit := w.image().Edit()
	for _, name := range topicNames {
		if w.image().Topic(name) == nil {
			continue
		}
		t := *w.image().Topic(name)
		t.Partitions = slices.Clone(t.Partitions)
		for i := range t.Partitions {
			if id, ok := leaders[store.TopicPartition{Topic: name, Partition: int32(i)}]; ok {
				t.Partitions[i] = metadata.Partition{Leader: id, LeaderEpoch: t.Partitions[i].LeaderEpoch + 1}
				w.Tracef("%s-%d: broker %d leads in epoch %d", name, i, id, t.Partitions[i].LeaderEpoch)
			}
		}
		edit.PutTopic(t)
	}
	w.publish(edit.Image())
}

// publish makes an image the true one, of which brokers hear one after the other.
func (w *world) publish(i *metadata.Image) {
	w.images = append(w.images, i)
	version := len(w.images) - 1
	for _, b := range w.brokers {
		if b.up {
			life := b.life
			w.After(w.About(300*time.Millisecond), func() { b.do(life, func() { b.learn(version) }) })
		}
	}
}

// someoneUp returns a broker that is up, nil if none is.
func (w *world) someoneUp() *broker {
	for _, i := range w.Rand.Perm(len(w.brokers)) {
		if w.brokers[i].up {
			return w.brokers[i]
		}
	}
	return nil
}

// planFaults has brokers crash, freeze and take over from one another.
func (w *world) planFaults() {
	f := &w.plan.faults
	w.Every(f.crash, func() { w.brokers[w.Rand.IntN(len(w.brokers))].crash() })
	w.Every(f.frozen, func() {
		b := w.brokers[w.Rand.IntN(len(w.brokers))]
		b.frozenUntil = max(b.frozenUntil, w.Now+w.Between(100*time.Millisecond, 8*time.Second))
		w.Tracef("broker %d: freezes", b.id)
		w.Count("broker frozen")
		if w.Rand.IntN(2) == 0 {
			w.After(w.Between(time.Second, 3*time.Second), func() { w.replace(b) })
		}
	})
	w.Every(f.move, func() {
		all := w.partitions()
		to := w.someoneUp()
		if to == nil {
			return
		}
		leaders := map[store.TopicPartition]int32{}
		for range 1 + w.Rand.IntN(2) {
			leaders[all[w.Rand.IntN(len(all))]] = to.id
		}
		w.Count("leader moved")
		w.elect(leaders)
	})
	w.Every(f.compact, w.compactSome)
	w.Every(f.loss, w.loseState)
	w.Every(w.plan.tails.every, w.loseTail)
	w.Every(f.remove, w.removeSide)
	w.Every(f.trim, w.trimSome)
	w.Every(time.Second, w.retainSome)
	for _, b := range w.brokers {
		w.resolveLater(b)
		if w.plan.tails.every > 0 {
			w.raiseLater(b)
		}
	}
	w.Every(f.admin, w.administer)
}

// resolveLater has a broker look for orphans from time to time.
func (w *world) resolveLater(b *broker) {
	w.After(w.Between(2*time.Second, 8*time.Second), func() {
		if b.up && !w.over {
			b.do(b.life, b.resolve)
		}
		w.resolveLater(b)
	})
}

// replace gives what a broker leads to others.
func (w *world) replace(b *broker) {
	leaders := map[store.TopicPartition]int32{}
	for _, tp := range w.partitions() {
		if leaderOf(w.image(), tp) != b.id {
			continue
		}
		if to := w.someoneUp(); to != nil {
			leaders[tp] = to.id
		}
	}
	w.elect(leaders)
}

// compactSome has a leader compact one of its logs.
func (w *world) compactSome() {
	all := w.partitions()
	w.compact(all[w.Rand.IntN(len(all))], w.Between(0, 10*time.Second))
}

// compact does what the manager does in the background.
func (w *world) compact(tp store.TopicPartition, retention time.Duration) {
	b, l := w.brokers[leaderOf(w.image(), tp)], w.store.log(tp)
	if !b.up || l.owner == nil || l.owner.b != b || l.owner.life != b.life {
		return
	}
	p := b.manager.Get(tp.Topic, tp.Partition)
	if p == nil {
		return
	}
	next := p.LastStableOffset()
	if want, _ := l.stable(p.HighWatermark()); next > want {
		w.Violated("%v: last stable offset is %d, should be %d", tp, next, want)
	}
	err := l.owner.Log.Compact(context.Background(), store.Compaction{Now: w.Clock(), NextOffset: next, DeleteRetention: retention, MaxLag: time.Millisecond})
	l.packed = true
	w.Tracef("%s-%d: compacted below %d: %v", tp.Topic, tp.Partition, next, err)
	w.Count("compaction of " + tp.Topic)
}
