package share

import (
	"slices"

	"muster/internal/group/assignor"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/metadata"
)

// assignorSimple is the name of the assignor of share groups.
const assignorSimple = "simple"

// Assignor implements modern.Kind.
func (g *Group) Assignor(*kind.Step) string { return assignorSimple }

// job is what the assignor is to do. It counts the partitions that are initialized.
type job struct {
	in    *assignor.Input
	parts [][]int32 // of each topic, those that are initialized
}

// Job implements modern.Kind.
func (g *Group) Job(x *kind.Step) modern.Job[partition] {
	j := &job{in: &assignor.Input{}}
	index, byID := map[string]int32{}, map[metadata.TopicID]int32{}
	for _, t := range g.FindTopics(x.Image).Found {
		first, _ := slices.BinarySearchFunc(g.topics.initialized, partition{Topic: t.ID}, modern.Compare[partition])
		var parts []int32
		for _, p := range g.topics.initialized[first:] {
			if p.Topic != t.ID {
				break
			}
			parts = append(parts, p.Number)
		}
		i := int32(len(j.in.Topics))
		index[t.Name], byID[t.ID] = i, i
		j.in.Topics, j.parts = append(j.in.Topics, assignor.Topic{ID: t.ID, Name: t.Name, Partitions: int32(len(parts))}), append(j.parts, parts)
	}
	var last *Member
	for _, mem := range g.Members {
		if mem.Metadata == nil {
			continue
		}
		e := assignor.Member{ID: mem.ID, Previous: j.previous(mem.Target, byID)}
		if last != nil && slices.Equal(last.Metadata.Topics, mem.Metadata.Topics) {
			e.Topics = j.in.Members[len(j.in.Members)-1].Topics
		} else {
			for _, name := range mem.Metadata.Topics { // Both are in the order of names.
				if i, ok := index[name]; ok {
					e.Topics = append(e.Topics, i)
				}
			}
		}
		last = mem
		j.in.Members = append(j.in.Members, e)
	}
	return j
}

// previous is what a member was to have before.
func (j *job) previous(target []partition, byID map[metadata.TopicID]int32) (out []assignor.Partitions) {
	for _, p := range target {
		i, ok := byID[p.Topic]
		if !ok {
			continue
		}
		at, ok := slices.BinarySearch(j.parts[i], p.Number)
		if !ok {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Topic != i {
			out = append(out, assignor.Partitions{Topic: i})
		}
		last := &out[len(out)-1]
		last.List = append(last.List, int32(at))
	}
	slices.SortFunc(out, func(a, b assignor.Partitions) int { return int(a.Topic - b.Topic) })
	return out
}

func (j *job) Assignor() string { return assignorSimple }

func (j *job) Size() int {
	n := len(j.in.Members)
	for _, parts := range j.parts {
		n += len(parts)
	}
	return n
}

// Assign runs the assignor. It reads nothing but the input.
func (j *job) Assign() []modern.Share[partition] {
	shares := make([]modern.Share[partition], len(j.in.Members))
	for i, list := range assignor.Simple(j.in) {
		var parts []partition
		for _, t := range list {
			for _, at := range t.List {
				parts = append(parts, partition{Topic: j.in.Topics[t.Topic].ID, Number: j.parts[t.Topic][at]})
			}
		}
		shares[i] = modern.Share[partition]{Member: j.in.Members[i].ID, Parts: modern.Sorted(parts)}
	}
	return shares
}
