package streams

import (
	"slices"

	"muster/internal/group/assignor"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
)

// sticky is the name of the assignor that there is.
const sticky = "sticky"

// job is what the assignor of a streams group is to do.
type job struct {
	in            *assignor.TaskInput
	subtopologies []string // their ids, in the order of the input
	members       []modern.Share[Task]
}

// Assignor implements modern.Kind.
func (g *Group) Assignor(*kind.Step) string { return sticky }

// Job implements modern.Kind. As long as the topology is not ready there are no tasks.
func (g *Group) Job(x *kind.Step) modern.Job[Task] {
	j := &job{in: &assignor.TaskInput{Standbys: g.Standbys}}
	if r := g.look(x.Image); g.isReady() && r != nil && r.IsReady() {
		for _, s := range r.Subtopologies {
			j.subtopologies = append(j.subtopologies, s.ID)
			j.in.Subtopologies = append(j.in.Subtopologies, assignor.Subtopology{Tasks: s.Tasks, Stateful: s.Stateful})
		}
	}
	for _, m := range g.Members {
		if m.Metadata == nil {
			continue
		}
		share, in := modern.Share[Task]{Member: m.ID}, assignor.TaskMember{Process: m.Metadata.Process}
		if m.Metadata.Instance != nil {
			share.Instance = *m.Metadata.Instance
		}
		for _, t := range m.Target {
			i, ok := slices.BinarySearch(j.subtopologies, t.Subtopology)
			switch task := (assignor.Task{Subtopology: int32(i), Partition: t.Partition}); {
			case !ok:
			case t.Role == Active:
				in.Active = append(in.Active, task)
			default:
				in.Standby = append(in.Standby, task)
			}
		}
		j.members, j.in.Members = append(j.members, share), append(j.in.Members, in)
	}
	return j
}

func (j *job) Assignor() string { return sticky }

func (j *job) Size() int {
	n := len(j.members)
	for _, s := range j.in.Subtopologies {
		n += int(s.Tasks) * (1 + j.in.Standbys)
	}
	return n
}

// Assign runs the assignor. It reads nothing but the input.
func (j *job) Assign() []modern.Share[Task] {
	out := slices.Clone(j.members)
	for i, share := range assignor.Tasks(j.in) {
		for role, list := range [][]assignor.Task{share.Active, share.Standby} {
			for _, t := range list {
				out[i].Parts = append(out[i].Parts, Task{Role(role), TaskID{j.subtopologies[t.Subtopology], t.Partition}})
			}
		}
		out[i].Parts = modern.Sorted(out[i].Parts)
	}
	return out
}
