package streams

import (
	"cmp"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/modern"
	"muster/internal/group/schema"
)

// Role is what a member does with a task.
type Role int8

// The roles.
const (
	Active  Role = iota // it works on it
	Standby             // it has a copy of its state
	Warmup              // it is getting a copy, to work on it then
)

// TaskID is a task: the partitions of one number of all source topics of a subtopology.
type TaskID struct {
	Subtopology string
	Partition   int32
}

// Task is what members are given: a task in a role.
type Task struct {
	Role Role
	TaskID
}

// Compare implements modern.Part.
func (t Task) Compare(o Task) int {
	return cmp.Or(cmp.Compare(t.Role, o.Role), strings.Compare(t.Subtopology, o.Subtopology), cmp.Compare(t.Partition, o.Partition))
}

// byRole is a list that records and messages have by role.
func byRole[T any](active, standby, warmup []T) [3][]T { return [3][]T{active, standby, warmup} }

// tasksOf reads tasks of a target.
func tasksOf(v *schema.StreamsTarget) []Task {
	if v == nil {
		return nil
	}
	var out []Task
	for role, list := range byRole(v.Active, v.Standby, v.Warmup) {
		for i := range list {
			for _, n := range list[i].Partitions {
				out = append(out, Task{Role(role), TaskID{list[i].Subtopology, n}})
			}
		}
	}
	return modern.Sorted(out)
}

// heldOf reads tasks that a member has. Where it is not told since which epoch, it is the
// member's.
func heldOf(lists [3][]schema.OwnedTasks, epoch int32) []Held {
	var out []Held
	for role, list := range lists {
		for i := range list {
			for j, n := range list[i].Partitions {
				h := Held{Part: Task{Role(role), TaskID{list[i].Subtopology, n}}, Since: max(epoch, 0)}
				if len(list[i].Epochs) == len(list[i].Partitions) {
					h.Since = list[i].Epochs[j]
				}
				out = append(out, h)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Held) int { return a.Part.Compare(b.Part) })
	return slices.CompactFunc(out, func(a, b Held) bool { return a.Part == b.Part })
}

// claimed reads tasks that a client says it has.
func claimed(m *kmsg.StreamsGroupHeartbeatRequest) []Task {
	var out []Task
	for role, list := range byRole(m.ActiveTasks, m.StandbyTasks, m.WarmupTasks) {
		for i := range list {
			for _, n := range list[i].Partitions {
				out = append(out, Task{Role(role), TaskID{list[i].SubtopologyID, n}})
			}
		}
	}
	return modern.Sorted(out)
}

// grouped calls back with the tasks of each subtopology in a role, which a sorted list has one
// after the other.
func grouped(list []Task, do func(role Role, subtopology string, tasks []Task)) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Role == list[0].Role && list[n].Subtopology == list[0].Subtopology {
			n++
		}
		do(list[0].Role, list[0].Subtopology, list[:n])
		list = list[n:]
	}
}

// numbers are the partitions of tasks.
func numbers(tasks []Task) []int32 {
	out := make([]int32, len(tasks))
	for i := range tasks {
		out[i] = tasks[i].Partition
	}
	return out
}

// targetOf writes tasks of a target.
func targetOf(list []Task) *schema.StreamsTarget {
	var out [3][]schema.TaskIDs
	grouped(list, func(role Role, subtopology string, tasks []Task) {
		out[role] = append(out[role], schema.TaskIDs{Subtopology: subtopology, Partitions: numbers(tasks)})
	})
	return &schema.StreamsTarget{Active: out[Active], Standby: out[Standby], Warmup: out[Warmup]}
}

// ownedOf writes tasks that a member has. As in Kafka, only active ones have epochs.
func ownedOf(list []Held) (out [3][]schema.OwnedTasks) {
	grouped(modern.PartsHeld(list), func(role Role, subtopology string, tasks []Task) {
		o := schema.OwnedTasks{Subtopology: subtopology, Partitions: numbers(tasks)}
		for _, t := range tasks {
			if since, _ := modern.SinceOf(list, t); role == Active {
				o.Epochs = append(o.Epochs, since)
			}
		}
		out[role] = append(out[role], o)
	})
	return out
}

// toldOf is tasks as answers have them, by role. A role without any has an empty list.
func toldOf(list []Task) [3][]kmsg.TaskIDs {
	out := byRole([]kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{})
	grouped(list, func(role Role, subtopology string, tasks []Task) {
		t := kmsg.NewTaskIDs()
		t.SubtopologyID, t.Partitions = subtopology, numbers(tasks)
		out[role] = append(out[role], t)
	})
	return out
}
