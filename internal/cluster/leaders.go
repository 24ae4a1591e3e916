package cluster

import (
	"cmp"
	"slices"

	"muster/internal/metadata"
	"muster/internal/record"
)

// assign gives every partition a leader among the brokers there are, and returns
// the records of the topics that changed. A leader epoch rises with each change,
// and for the partitions of a broker that was started again. Without brokers
// everything stays: there is no one to lead.
func assign(edit *metadata.Edit, restarted int32) []record.Record {
	if len(edit.Image().Brokers) == 0 {
		return nil
	}
	var recs []record.Record
	for _, t := range journalsLast(edit.Image().Topics()) {
		next := lead(t.Partitions, leadersOf(edit.Image(), t), restarted)
		if !slices.Equal(next, t.Partitions) {
			changed := *t
			changed.Partitions = next
			edit.PutTopic(changed)
			recs = append(recs, topicRecord(changed, true))
		}
	}
	return recs
}

// lead returns partitions with leaders, whose epochs rise where they are others, or were
// started again.
func lead(partitions []metadata.Partition, leaders []int32, restarted int32) []metadata.Partition {
	next := slices.Clone(partitions)
	for i, leader := range leaders {
		if leader != next[i].Leader || leader == restarted {
			next[i] = metadata.Partition{Leader: leader, LeaderEpoch: next[i].LeaderEpoch + 1}
		}
	}
	return next
}

func currentLeaders(t *metadata.Topic) []int32 {
	leaders := make([]int32, len(t.Partitions))
	for i, p := range t.Partitions {
		leaders[i] = p.Leader
	}
	return leaders
}

// journalsLast puts the journals behind the topics that they tell of, whose leaders
// they take.
func journalsLast(topics []*metadata.Topic) []*metadata.Topic {
	isJournal := func(t *metadata.Topic) int {
		if metadata.JournalOf(t.Name) != "" {
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(topics), func(a, b *metadata.Topic) int { return isJournal(a) - isJournal(b) })
}

// leadersOf names the leaders of a topic's partitions. Those of a journal go
// where their groups or transactions are, which comes before. A partition that was
// given to a broker which may lead goes there; the others are shared out among
// themselves.
func leadersOf(image *metadata.Image, t *metadata.Topic) []int32 {
	leaders := currentLeaders(t)
	if follow(image, t.Name, leaders, 0) {
		return leaders
	}
	given := make([]bool, len(leaders))
	for i, id := range t.Preferred {
		if id != metadata.NoBroker && image.MayLead(id) {
			leaders[i], given[i] = id, true
		}
	}
	s := newSpread(image.MayLeadAll(), t.Name, leaders, given)
	s.release()
	s.fill()
	return leaders
}

// spreadNew names the leaders of a topic that is to have more partitions than it
// has, of which none moves. The new ones go to those asked for, or else are
// shared out.
func spreadNew(image *metadata.Image, topic string, have []metadata.Partition, count int, asked []int32) []int32 {
	leaders := slices.Repeat([]int32{metadata.NoBroker}, count)
	for i, p := range have {
		leaders[i] = p.Leader
	}
	copy(leaders[len(have):], asked)
	if len(image.Brokers) > 0 && !follow(image, topic, leaders, len(have)) {
		newSpread(image.MayLeadAll(), topic, leaders, nil).fill()
	}
	return leaders
}

// follow makes the leaders of a journal's partitions, from one on, those of the
// groups or transactions that they are about, if there are any.
func follow(image *metadata.Image, topic string, leaders []int32, from int) bool {
	shards := image.Topic(metadata.JournalOf(topic))
	if shards == nil {
		return false
	}
	for i := from; i < len(leaders); i++ {
		leaders[i] = shards.Partitions[i%len(shards.Partitions)].Leader
	}
	return true
}

// spread shares the partitions of a topic out so that no broker leads more than
// one above another. It moves as few of them as it can: a broker goes on leading what
// it leads, up to its share, and each partition that is left goes to the broker
// with room that has the highest hash of its id and the partition. Every broker
// computes the same result from the same image.
type spread struct {
	topic   string
	leaders []int32 // by partition, NoBroker if it has none
	given   []bool  // by partition, whether its leader was chosen before; nil if none is
	shares  []share // in the order of brokers
}

// share is how many partitions a broker leads, and how many it may.
type share struct {
	broker    int32
	has, most int
}

// newSpread computes the shares. The partitions that are left over after an even
// division go to brokers that have them already, and else by hash.
func newSpread(brokers []metadata.Broker, topic string, leaders []int32, given []bool) *spread {
	s := &spread{topic: topic, leaders: leaders, given: given}
	count := 0
	for i := range leaders {
		if !s.isGiven(i) {
			count++
		}
	}
	order := make([]*share, len(brokers))
	s.shares = make([]share, len(brokers))
	for i := range brokers {
		s.shares[i] = share{broker: brokers[i].ID, most: count / len(brokers)}
		order[i] = &s.shares[i]
	}
	for i, leader := range leaders {
		switch at := s.find(leader); {
		case s.isGiven(i):
		case at != nil:
			at.has++
		default:
			leaders[i] = metadata.NoBroker
		}
	}
	slices.SortStableFunc(order, func(a, b *share) int {
		return cmp.Or(b.has-a.has, cmp.Compare(rendezvous(b.broker, topic, -1), rendezvous(a.broker, topic, -1)))
	})
	for _, lucky := range order[:count%len(brokers)] {
		lucky.most++
	}
	return s
}

func (s *spread) isGiven(partition int) bool { return partition < len(s.given) && s.given[partition] }

func (s *spread) find(broker int32) *share {
	i := slices.IndexFunc(s.shares, func(x share) bool { return x.broker == broker })
	if i < 0 {
		return nil
	}
	return &s.shares[i]
}

// release takes from each broker what is above its share, of the lowest hash
// first.
func (s *spread) release() {
	for at := range s.shares {
		x := &s.shares[at]
		if x.has <= x.most {
			continue
		}
		var led []int
		for i, leader := range s.leaders {
			if leader == x.broker && !s.isGiven(i) {
				led = append(led, i)
			}
		}
		slices.SortStableFunc(led, func(a, b int) int {
			return cmp.Compare(rendezvous(x.broker, s.topic, a), rendezvous(x.broker, s.topic, b))
		})
		for _, i := range led[:x.has-x.most] {
			s.leaders[i] = metadata.NoBroker
		}
		x.has = x.most
	}
}

// fill gives a leader to each partition that has none.
func (s *spread) fill() {
	for i, leader := range s.leaders {
		if leader != metadata.NoBroker {
			continue
		}
		var best *share
		for at := range s.shares {
			x := &s.shares[at]
			if x.has < x.most && (best == nil || rendezvous(x.broker, s.topic, i) > rendezvous(best.broker, s.topic, i)) {
				best = x
			}
		}
		s.leaders[i] = best.broker
		best.has++
	}
}

// rendezvous hashes by FNV-1a, finished with a mix that spreads small numbers
// over all bits.
func rendezvous(broker int32, topic string, partition int) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(topic) {
		h = (h ^ uint64(topic[i])) * 1099511628211
	}
	h = (h ^ uint64(uint32(partition))) * 1099511628211
	h ^= uint64(uint32(broker)) * 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
