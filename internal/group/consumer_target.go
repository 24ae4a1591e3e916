package group

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/assignor"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// bump gives the group another epoch if a member subscribes to other topics, or if
// they are not what they were. They are looked at when there is another image of the
// cluster than the last time.
func (g *consumerGroup) bump(x *step, ch change) {
	if ch.bumps = ch.bumps || g.renews(x); ch.bumps || g.seen != x.image || x.image == nil {
		hash := g.topicsNow(x)
		if hash != g.hash && len(x.why) == 0 { // It was looked at by another broker last.
			blame(x, journal.Trigger{Kind: journal.TriggerTopics})
		}
		if ch.bumps || hash != g.hash {
			g.raise(x, hash)
		}
		g.seen = x.image
	}
	g.keepReasons(x)
	if !g.hasEpoch { // The group is there, though nobody wants anything of it yet.
		g.writeEpoch(x, &schema.ConsumerEpoch{Epoch: g.epoch})
	}
	if ch.heir {
		emitHeir(x)
	}
}

// writeEpoch stores the group's epoch. The record comes before those of what is the
// reason for it: if only the beginning of a step's records is stored, there is an
// epoch too many, and not a change that nobody makes a target for.
func (g *consumerGroup) writeEpoch(x *step, epoch *schema.ConsumerEpoch) {
	r := &schema.ConsumerEpochRecord{Group: g.id, Value: epoch}
	x.records = slices.Insert(x.records, x.from, machine.Record(r))
	x.applyRecord(r)
}

// raise gives the group another epoch.
func (g *consumerGroup) raise(x *step, hash int64) {
	g.writeEpoch(x, &schema.ConsumerEpoch{Epoch: g.nextEpoch(x), Hash: hash})
	if g.oldTopics {
		x.write(&schema.ConsumerTopicsRecord{Group: g.id})
	}
	g.noteEpoch(x)
}

// subscribed lists the topics that members subscribe to and that exist, by name.
func (g *consumerGroup) subscribed(image *metadata.Image) []*metadata.Topic {
	return g.lookAt(image).topics
}

// topicsHash is a number that changes when the topics do.
func topicsHash(topics []*metadata.Topic) int64 {
	if len(topics) == 0 {
		return 0
	}
	h := fnv.New64a()
	for _, t := range topics {
		_, _ = h.Write(t.ID[:])
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(t.Partitions))))
		_, _ = h.Write([]byte(t.Name))
		_, _ = h.Write([]byte{0})
	}
	return int64(h.Sum64())
}

// run is a run of the assignor.
type run struct {
	id       uint64
	group    string
	epoch    int32 // of the group when it began
	assignor string
	in       *assignor.Input
	parked   *beat // the heartbeat that has begun it, until it is answered
}

// atOnce is up to how many members and partitions the assignor is run in the step
// itself. More might hold up everybody else in the shard.
const atOnce = 1000

// retarget makes a new target, if it is time to. It says whether that is under way
// elsewhere.
func (g *consumerGroup) retarget(x *step) (later bool) {
	if g.targetEpoch >= g.epoch || g.run != nil || g.tooLarge == g.epoch {
		return false
	}
	interval := x.cfg.Consumer.of(g.id).Interval.Milliseconds()
	if g.hasTarget && interval > 0 && x.now.UnixMilli() < g.targetAt+interval && x.now.UnixMilli() >= g.targetAt {
		return false
	}
	r := &run{group: g.id, epoch: g.epoch, assignor: g.chosenAssignor(x), in: g.input(x.image)}
	if r.size() <= cmp.Or(x.cfg.Consumer.AtOnce, atOnce) {
		g.install(x, r, r.assign())
		return false
	}
	r.id = x.runTask(r, func() any { return r.assign() })
	g.run = r
	return true
}

func (r *run) size() int {
	n := len(r.in.Members)
	for _, t := range r.in.Topics {
		n += int(t.Partitions)
	}
	return n
}

// assign runs the assignor. It reads nothing but the input.
func (r *run) assign() [][]assignor.Partitions {
	if r.assignor == assignorRange {
		return assignor.Range(r.in)
	}
	return assignor.Uniform(r.in)
}

// chosenAssignor is what most members ask for; among equals, and if nobody asks, the
// first of those that the broker has.
func (g *consumerGroup) chosenAssignor(x *step) string {
	votes := map[string]int{}
	for _, m := range g.members {
		if m.says != nil && m.says.Assignor != nil {
			votes[*m.says.Assignor]++
		}
	}
	best := x.cfg.Consumer.Assignors[0]
	for _, name := range x.cfg.Consumer.Assignors {
		if votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

// done takes the result of the assignor.
func (r *run) done(x *step, result any) {
	g, ok := x.groups[r.group].(*consumerGroup)
	if !ok || g.run != r {
		if r.parked != nil {
			beatError(x, r.parked.id, r.parked.version, refused(kerr.UnknownMemberID, "The group is gone."))
		}
		return
	}
	g.run = nil
	g.install(x, r, result.([][]assignor.Partitions))
	if b := r.parked; b != nil {
		x.from = len(x.records)
		g.bump(x, change{}) // Topics may have changed meanwhile.
		g.answerBeat(x, g.member(b.member), *b)
	}
}

// install makes what the assignor says the target. Only what differs is written.
// Members may have come and gone since it began. If what a member is to have is too
// much for one record, everybody keeps what they have: in the next epoch it may be
// less.
func (g *consumerGroup) install(x *step, r *run, result [][]assignor.Partitions) {
	var records []machine.Record
	for i := range r.in.Members {
		mem := r.heir(g, i)
		if mem == nil {
			continue
		}
		target := r.target(result[i])
		if !fitsHeld(x, g.id, mem.id, target) {
			g.tooLarge = r.epoch
			g.noteTooLarge(x, r, mem)
			return
		}
		if !mem.stored || !slices.Equal(mem.target, target) {
			records = append(records, targetRecord(g.id, mem.id, target))
		}
	}
	for _, rec := range records {
		x.write(rec)
	}
	x.write(&schema.ConsumerTargetEpochRecord{Group: g.id, Value: &schema.ConsumerTargetEpoch{Epoch: r.epoch, Timestamp: x.now.UnixMilli()}})
	g.noteTarget(x, r)
}

// heir is whom the assignor's result for a member is for: the member, or whoever has
// taken its place since it began, which is no reason for another epoch.
func (r *run) heir(c *consumerGroup, i int) *consumerMember {
	if mem := c.member(r.in.Members[i].ID); mem != nil {
		return mem
	}
	return c.instances[r.in.Members[i].Instance]
}

// target turns what the assignor says of a member into partitions.
func (r *run) target(list []assignor.Partitions) []part {
	var out []part
	for _, t := range list {
		for _, n := range t.List {
			out = append(out, part{r.in.Topics[t.Topic].ID, n})
		}
	}
	slices.SortFunc(out, compareParts)
	return out
}

// input is what the assignor needs to know, none of which changes.
func (g *consumerGroup) input(image *metadata.Image) *assignor.Input {
	in := &assignor.Input{}
	index, byID := map[string]int32{}, map[metadata.TopicID]int32{}
	for i, t := range g.subscribed(image) {
		in.Topics = append(in.Topics, assignor.Topic{ID: t.ID, Name: t.Name, Partitions: int32(len(t.Partitions))})
		index[t.Name], byID[t.ID] = int32(i), int32(i)
	}
	var last *consumerMember
	for _, m := range g.members {
		if m.says == nil {
			continue
		}
		e := assignor.Member{ID: m.id, Instance: orEmpty(m.says.Instance), Previous: previous(m.target, byID)}
		if last != nil && last.pattern() == m.pattern() && slices.Equal(last.says.Topics, m.says.Topics) {
			e.Topics = in.Members[len(in.Members)-1].Topics
		} else {
			e.Topics = g.topicsOf(m, index)
		}
		last = m
		in.Members = append(in.Members, e)
	}
	return in
}

// topicsOf lists the topics that a member subscribes to, by their index.
func (g *consumerGroup) topicsOf(m *consumerMember, index map[string]int32) []int32 {
	names := m.says.Topics
	if r := g.regexes[m.pattern()]; r != nil {
		names = append(slices.Clone(names), r.topics...)
	}
	var out []int32
	for _, name := range names {
		if i, ok := index[name]; ok {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// previous is what a member was to have before.
func previous(target []part, index map[metadata.TopicID]int32) []assignor.Partitions {
	var out []assignor.Partitions
	for _, p := range target {
		i, ok := index[p.topic]
		if !ok {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Topic != i {
			out = append(out, assignor.Partitions{Topic: i})
		}
		last := &out[len(out)-1]
		last.List = append(last.List, p.n)
	}
	slices.SortFunc(out, func(a, b assignor.Partitions) int { return int(a.Topic - b.Topic) })
	return out
}
