package consumer

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/assignor"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// bump gives the group another epoch if a member subscribes to other topics, or if
// they are not what they were. They are looked at when there is another image of the
// cluster than the last time.
func (g *Group) bump(x *kind.Step, ch change) {
	if ch.bumps = ch.bumps || g.renewAfterLoad(x); ch.bumps || g.seen != x.Image || x.Image == nil {
		hash := g.checkTopics(x)
		if hash != g.Hash && len(x.Why) == 0 { // It was looked at by another broker last.
			addTriggers(x, journal.Trigger{Kind: journal.TriggerTopics})
		}
		if ch.bumps || hash != g.Hash {
			g.raiseEpoch(x, hash)
		}
		g.seen = x.Image
	}
	g.keepTriggers(x)
	if !g.HasEpoch { // The group is there, though no one wants anything of it yet.
		g.writeEpoch(x, &schema.ConsumerEpoch{Epoch: g.Epoch})
	}
	if ch.replaced {
		emitReplacement(x)
	}
}

// writeEpoch stores the group's epoch. The record comes before those of what is the
// reason for it: if only the beginning of a step's records is stored, there is an
// epoch too many, and not a change that no one makes a target for.
func (g *Group) writeEpoch(x *kind.Step, epoch *schema.ConsumerEpoch) {
	r := &schema.ConsumerEpochRecord{Group: g.ID, Value: epoch}
	x.Records = slices.Insert(x.Records, x.From, machine.Record(r))
	x.ApplyRecord(r)
}

// raiseEpoch gives the group another epoch.
func (g *Group) raiseEpoch(x *kind.Step, hash int64) {
	g.writeEpoch(x, &schema.ConsumerEpoch{Epoch: g.Next(x.Epoch), Hash: hash})
	if g.oldTopics {
		x.Write(&schema.ConsumerTopicsRecord{Group: g.ID})
	}
	g.noteEpoch(x)
}

// Subscribed lists the topics that members subscribe to and that exist, by name.
func (g *Group) Subscribed(image *metadata.Image) []*metadata.Topic {
	return g.findTopics(image).Found
}

// Run is a run of the assignor.
type Run struct {
	id       uint64
	group    string
	epoch    int32 // of the group when it began
	assignor string
	in       *assignor.Input
	Parked   *PendingHeartbeat // the heartbeat that has begun it, until it is answered
}

// atOnce is up to how many members and partitions the assignor is run in the step
// itself. More might hold up everybody else in the shard.
const atOnce = 1000

// retarget makes a new target, if it is time to. It says whether that is under way
// elsewhere.
func (g *Group) retarget(x *kind.Step) (later bool) {
	if !g.IsBehind() || g.Run != nil || g.tooLarge == g.Epoch || !g.MayTarget(x.Now, x.Cfg.Consumer.Of(g.ID).Interval) {
		return false
	}
	r := &Run{group: g.ID, epoch: g.Epoch, assignor: g.chosenAssignor(x), in: g.input(x.Image)}
	if r.size() <= cmp.Or(x.Cfg.Consumer.AtOnce, atOnce) {
		g.install(x, r, r.assign())
		return false
	}
	r.id = x.RunTask(r, func() any { return r.assign() })
	g.Run = r
	return true
}

func (r *Run) size() int {
	n := len(r.in.Members)
	for _, t := range r.in.Topics {
		n += int(t.Partitions)
	}
	return n
}

// assign runs the assignor. It reads nothing but the input.
func (r *Run) assign() [][]assignor.Partitions {
	if r.assignor == kind.AssignorRange {
		return assignor.Range(r.in)
	}
	return assignor.Uniform(r.in)
}

// chosenAssignor is what most members ask for; among equals, and if no one asks, the
// first of those that the broker has.
func (g *Group) chosenAssignor(x *kind.Step) string {
	votes := map[string]int{}
	for _, m := range g.Members {
		if m.Metadata != nil && m.Metadata.Assignor != nil {
			votes[*m.Metadata.Assignor]++
		}
	}
	best := x.Cfg.Consumer.Assignors[0]
	for _, name := range x.Cfg.Consumer.Assignors {
		if votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

// Done takes the result of the assignor.
func (r *Run) Done(x *kind.Step, result any) {
	g, ok := x.Groups[r.group].(*Group)
	if !ok || g.Run != r {
		if r.Parked != nil {
			replyError(x, r.Parked.id, r.Parked.version, refused(kerr.UnknownMemberID, "The group is gone."))
		}
		return
	}
	g.Run = nil
	g.install(x, r, result.([][]assignor.Partitions))
	if b := r.Parked; b != nil {
		x.From = len(x.Records)
		g.bump(x, change{}) // Topics may have changed meanwhile.
		g.answerHeartbeat(x, g.Member(b.Member), *b)
	}
}

// install makes what the assignor says the target. Only what differs is written.
// Members may have come and gone since it began. If what a member is to have is too
// much for one record, everybody keeps what they have: in the next epoch it may be
// less.
func (g *Group) install(x *kind.Step, r *Run, result [][]assignor.Partitions) {
	var records []machine.Record
	for i := range r.in.Members {
		mem := r.recipient(g, i)
		if mem == nil {
			continue
		}
		target := r.target(result[i])
		if !fitsHeld(x, g.ID, mem.ID, target) {
			g.tooLarge = r.epoch
			g.noteTooLarge(x, r, mem)
			return
		}
		if !mem.HasTarget || !slices.Equal(mem.Target, target) {
			records = append(records, TargetRecord(g.ID, mem.ID, target))
		}
	}
	for _, rec := range records {
		x.Write(rec)
	}
	x.Write(&schema.ConsumerTargetEpochRecord{Group: g.ID, Value: &schema.ConsumerTargetEpoch{Epoch: r.epoch, Timestamp: x.Now.UnixMilli()}})
	g.noteTarget(x, r)
}

// recipient is whom the assignor's result for a member is for: the member, or whoever has
// taken its place since it began, which is no reason for another epoch.
func (r *Run) recipient(c *Group, i int) *Member {
	if mem := c.Member(r.in.Members[i].ID); mem != nil {
		return mem
	}
	return c.Instances[r.in.Members[i].Instance]
}

// target turns what the assignor says of a member into partitions.
func (r *Run) target(list []assignor.Partitions) []modern.Partition {
	var out []modern.Partition
	for _, t := range list {
		for _, n := range t.List {
			out = append(out, modern.Partition{Topic: r.in.Topics[t.Topic].ID, Number: n})
		}
	}
	slices.SortFunc(out, modern.ComparePartitions)
	return out
}

// input is what the assignor needs to know, none of which changes.
func (g *Group) input(image *metadata.Image) *assignor.Input {
	in := &assignor.Input{}
	index, byID := map[string]int32{}, map[metadata.TopicID]int32{}
	for i, t := range g.Subscribed(image) {
		in.Topics = append(in.Topics, assignor.Topic{ID: t.ID, Name: t.Name, Partitions: int32(len(t.Partitions))})
		index[t.Name], byID[t.ID] = int32(i), int32(i)
	}
	var last *Member
	for _, m := range g.Members {
		if m.Metadata == nil {
			continue
		}
		e := assignor.Member{ID: m.ID, Instance: OrEmpty(m.Metadata.Instance), Previous: previous(m.Target, byID)}
		if last != nil && last.pattern() == m.pattern() && slices.Equal(last.Metadata.Topics, m.Metadata.Topics) {
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
func (g *Group) topicsOf(m *Member, index map[string]int32) []int32 {
	names := m.Metadata.Topics
	if r := g.Regexes[m.pattern()]; r != nil {
		names = append(slices.Clone(names), r.Topics...)
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
func previous(target []modern.Partition, index map[metadata.TopicID]int32) []assignor.Partitions {
	var out []assignor.Partitions
	for _, p := range target {
		i, ok := index[p.Topic]
		if !ok {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Topic != i {
			out = append(out, assignor.Partitions{Topic: i})
		}
		last := &out[len(out)-1]
		last.List = append(last.List, p.Number)
	}
	slices.SortFunc(out, func(a, b assignor.Partitions) int { return int(a.Topic - b.Topic) })
	return out
}
