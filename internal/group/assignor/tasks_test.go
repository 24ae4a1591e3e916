package assignor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"muster/internal/assert"
)

// parseTasks reads members, each as "process active / standby": a task is a subtopology, 0 to
// 9, and a partition.
func parseTasks(t *testing.T, in TaskInput, members string) *TaskInput {
	t.Helper()
	for text := range strings.SplitSeq(members, ";") {
		active, standby, _ := strings.Cut(text, "/")
		words := strings.Fields(active)
		m := TaskMember{Process: words[0]}
		m.Active, m.Standby = parseList(words[1:]), parseList(strings.Fields(standby))
		in.Members = append(in.Members, m)
	}
	return &in
}

func parseList(words []string) (out []Task) {
	for _, w := range words {
		var t Task
		_, _ = fmt.Sscanf(w, "%d.%d", &t.Subtopology, &t.Partition)
		out = append(out, t)
	}
	return out
}

func showTasks(in *TaskInput, shares []TaskShare) string {
	var out []string
	for m, s := range shares {
		text := in.Members[m].Process
		for _, t := range sortedTasks(s.Active) {
			text += fmt.Sprintf(" %d.%d", t.Subtopology, t.Partition)
		}
		if len(s.Standby) > 0 {
			text += " /"
		}
		for _, t := range sortedTasks(s.Standby) {
			text += fmt.Sprintf(" %d.%d", t.Subtopology, t.Partition)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func sortedTasks(list []Task) []Task {
	return slices.SortedFunc(slices.Values(list), func(a, b Task) int {
		if a.Subtopology != b.Subtopology {
			return int(a.Subtopology - b.Subtopology)
		}
		return int(a.Partition - b.Partition)
	})
}

func TestTasksAreAssigned(t *testing.T) {
	one, stateful := []Subtopology{{Tasks: 4}}, []Subtopology{{Tasks: 4, Stateful: true}}
	for _, c := range []struct {
		what          string
		subtopologies []Subtopology
		standbys      int
		members, want string
	}{
		{"a first deal", one, 0, "p; q", "p 0.0 0.2; q 0.1 0.3"},
		{"more members than tasks", one[:0:0], 0, "p; q", "p; q"},
		{"a process with two threads has twice as much", []Subtopology{{Tasks: 6}}, 0, "p; p; q", "p 0.0 0.3; p 0.2 0.5; q 0.1 0.4"},
		{"everyone keeps what they had", one, 0, "p 0.3 0.2; q 0.1 0.0", "p 0.2 0.3; q 0.0 0.1"},
		{"who joins gets what is above the share of the others", one, 0, "p 0.0 0.1 0.2 0.3; q", "p 0.0 0.1; q 0.2 0.3"},
		{"two who had the same", one, 0, "p 0.0 0.1; q 0.0 0.1", "p 0.0 0.1; q 0.2 0.3"},
		{"what does not exist counts for nothing", one, 0, "p 0.9 3.0; q 0.-1 / 7.7", "p 0.0 0.2; q 0.1 0.3"},
		{"standbys are elsewhere", stateful, 1, "p; q", "p 0.0 0.2 / 0.1 0.3; q 0.1 0.3 / 0.0 0.2"},
		{"a stateless task has no standby", one, 1, "p; q", "p 0.0 0.2; q 0.1 0.3"},
		{"a standby needs another process", stateful, 1, "p; p", "p 0.0 0.2; p 0.1 0.3"},
		{"as many standbys as there are other processes", stateful, 2, "p; q", "p 0.0 0.2 / 0.1 0.3; q 0.1 0.3 / 0.0 0.2"},
		{"a standby takes over from who is gone", stateful, 0, "p 0.0; q 0.1 / 0.2; r / 0.3", "p 0.0; q 0.1 0.2; r 0.3"},
		{"of two standbys that of the less loaded process takes over", stateful, 0, "p 0.0 0.1 / 0.2; q 0.3 / 0.2", "p 0.0 0.1; q 0.2 0.3"},
		{"who had a task active is its standby when another has it", []Subtopology{{Tasks: 2, Stateful: true}}, 1, "p 0.0 0.1; q", "p 0.0 / 0.1; q 0.1 / 0.0"},
		{"standbys stay", stateful, 1, "p 0.0 0.2 / 0.1; q 0.1 / 0.0 0.3; r 0.3 / 0.2", "p 0.0 0.2 / 0.1; q 0.1 / 0.0 0.3; r 0.3 / 0.2"},
		{"tasks of one partition come one after the other", []Subtopology{{Tasks: 2}, {Tasks: 2}}, 0, "p; q", "p 0.0 0.1; q 1.0 1.1"},
	} {
		in := parseTasks(t, TaskInput{Subtopologies: c.subtopologies, Standbys: c.standbys}, c.members)
		assert.Equal(t, showTasks(in, Tasks(in)), c.want, c.what)
	}
}

// randomTasks makes a group whose members have what they were told before, or anything.
func randomTasks(rng *rand.Rand) *TaskInput {
	in := &TaskInput{Standbys: rng.IntN(3)}
	for range 1 + rng.IntN(4) {
		in.Subtopologies = append(in.Subtopologies, Subtopology{Tasks: int32(rng.IntN(9)), Stateful: rng.IntN(2) == 0})
	}
	some := func() (out []Task) {
		for range rng.IntN(6) {
			out = append(out, Task{int32(rng.IntN(5)), int32(rng.IntN(10))})
		}
		return out
	}
	for range rng.IntN(9) {
		in.Members = append(in.Members, TaskMember{Process: fmt.Sprint(rng.IntN(5)), Active: some(), Standby: some()})
	}
	return in
}

// What holds of every assignment: each task is active once; no process has a task twice; a
// stateful task has its standbys if there are processes for them, others have none.
func TestTasksHaveOneOwnerAndTheirStandbys(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	for round := range 5000 {
		in := randomTasks(rng)
		shares := Tasks(in)
		processes, active, all := map[string]bool{}, map[Task]int{}, map[Task][]string{}
		for m, s := range shares {
			processes[in.Members[m].Process] = true
			for _, task := range s.Active {
				active[task]++
				all[task] = append(all[task], in.Members[m].Process)
			}
			for _, task := range s.Standby {
				all[task] = append(all[task], in.Members[m].Process)
			}
		}
		for i, s := range in.Subtopologies {
			for n := range s.Tasks {
				task, want := Task{int32(i), n}, 1
				if len(in.Members) == 0 {
					continue
				}
				if s.Stateful {
					want = min(1+in.Standbys, len(processes))
				}
				slices.Sort(all[task])
				assert.Equal(t, active[task], 1, "owners of", task, "in", round)
				assert.Equal(t, len(slices.Compact(slices.Clone(all[task]))), want, "processes of", task, "in", round)
				assert.Equal(t, len(all[task]), want, "members of", task, "in", round)
				delete(all, task)
			}
		}
		assert.Equal(t, len(all), 0, "tasks that do not exist")
	}
}

// A first deal differs by one at most where processes have equally many members, and what was
// assigned once stays when nothing changes.
func TestAFirstDealIsEvenAndStays(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 2))
	for round := range 3000 {
		in := randomTasks(rng)
		in.Members = nil
		threads, processes := 1+rng.IntN(3), 1+rng.IntN(5)
		for i := range threads * processes {
			in.Members = append(in.Members, TaskMember{Process: fmt.Sprint(i % processes)})
		}
		shares := Tasks(in)
		least, most := 1<<30, 0
		for m, s := range shares {
			least, most = min(least, len(s.Active)), max(most, len(s.Active))
			in.Members[m].Active, in.Members[m].Standby = s.Active, s.Standby
		}
		assert.True(t, most-least <= 1, "round %d: members have %d to %d tasks", round, least, most)
		assert.Equal(t, showTasks(in, Tasks(in)), showTasks(in, shares), "assigned again in", round)
	}
}

// A member that leaves moves only what it had active, as long as that is a full share.
func TestALeaveMovesOnlyWhatTheLeaverHad(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 3))
	for range 2000 {
		in := &TaskInput{Subtopologies: []Subtopology{{Tasks: int32(1 + rng.IntN(30))}}}
		n := 2 + rng.IntN(6)
		for i := range n {
			in.Members = append(in.Members, TaskMember{Process: fmt.Sprint(i)})
		}
		for m, s := range Tasks(in) {
			in.Members[m].Active = s.Active
		}
		gone := rng.IntN(n)
		in.Members = slices.Delete(in.Members, gone, gone+1)
		for m, s := range Tasks(in) {
			for _, task := range in.Members[m].Active {
				assert.True(t, slices.Contains(s.Active, task), "%v moved, though its owner stayed", task)
			}
		}
	}
}

func BenchmarkTasks(b *testing.B) {
	for _, members := range []int{40, 400, 2000} {
		in := &TaskInput{Standbys: 1, Subtopologies: []Subtopology{{5000, true}, {2500, true}, {2500, false}}}
		for m := range members {
			in.Members = append(in.Members, TaskMember{Process: fmt.Sprint(m / 4)})
		}
		b.Run(fmt.Sprint("first/", members), func(b *testing.B) {
			for b.Loop() {
				Tasks(in)
			}
		})
		for m, s := range Tasks(in) {
			in.Members[m].Active, in.Members[m].Standby = s.Active, s.Standby
		}
		in.Members = in.Members[:members-4]
		b.Run(fmt.Sprint("leave/", members), func(b *testing.B) {
			for b.Loop() {
				Tasks(in)
			}
		})
	}
}
