package consumer

import (
	"slices"

	"muster/internal/group/assignor"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/metadata"
)

// job is what the assignor of a consumer group is to do.
type job struct {
	assignor string
	in       *assignor.Input
}

// Job implements modern.Kind.
func (g *Group) Job(x *kind.Step) modern.Job[Partition] {
	return &job{assignor: g.Assignor(x), in: g.input(x.Image)}
}

func (j *job) Assignor() string { return j.assignor }

func (j *job) Size() int {
	n := len(j.in.Members)
	for _, t := range j.in.Topics {
		n += int(t.Partitions)
	}
	return n
}

// Assign runs the assignor. It reads nothing but the input.
func (j *job) Assign() []modern.Share[Partition] {
	assign := assignor.Uniform
	if j.assignor == kind.AssignorRange {
		assign = assignor.Range
	}
	shares := make([]modern.Share[Partition], len(j.in.Members))
	for i, list := range assign(j.in) {
		m := &j.in.Members[i]
		shares[i] = modern.Share[Partition]{Member: m.ID, Instance: m.Instance, Parts: j.partitions(list)}
	}
	return shares
}

// partitions turns what the assignor says of a member into partitions.
func (j *job) partitions(list []assignor.Partitions) []Partition {
	var out []Partition
	for _, t := range list {
		for _, n := range t.List {
			out = append(out, Partition{Topic: j.in.Topics[t.Topic].ID, Number: n})
		}
	}
	slices.SortFunc(out, modern.Compare[Partition])
	return out
}

// Assignor is what most members ask for; among equals, and if no one asks, the
// first of those that the broker has.
func (g *Group) Assignor(x *kind.Step) string {
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

// input is what the assignor needs to know, none of which changes.
func (g *Group) input(image *metadata.Image) *assignor.Input {
	in := &assignor.Input{}
	index, byID := map[string]int32{}, map[metadata.TopicID]int32{}
	for i, t := range g.FindTopics(image).Found {
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
func previous(target []Partition, index map[metadata.TopicID]int32) []assignor.Partitions {
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
