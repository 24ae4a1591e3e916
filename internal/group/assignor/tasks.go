package assignor

import "slices"

// Subtopology is a part of a streams application. It has a task for each partition number of
// its source topics.
type Subtopology struct {
	Tasks    int32
	Stateful bool // its tasks have state, of which there may be standbys
}

// Task is a task of a subtopology.
type Task struct {
	Subtopology int32 // its index in TaskInput.Subtopologies
	Partition   int32
}

// TaskMember is a member of a streams group: a thread of an instance of the application, which is
// a process. Active and Standby are the last target. What they have that does not exist, and an
// active task that an earlier member has too, count for nothing.
type TaskMember struct {
	Process         string
	Active, Standby []Task
}

// TaskInput is all that the assignor of tasks knows.
type TaskInput struct {
	Subtopologies []Subtopology
	Members       []TaskMember // ascending by id
	Standbys      int          // how many of each stateful task, if there are processes for them
}

// TaskShare is what a member is to have, in no order.
type TaskShare struct{ Active, Standby []Task }

// Tasks is Kafka's sticky assignor of tasks (KIP-1071). No member keeps more than its share,
// which is that of all rounded up; when a member has as much, the others divide what is left.
//
//   - An active task goes back to the member that had it, else to a member that had it as a
//     standby, the one whose process has the least load, and else to the member with the
//     fewest tasks of the process with the least load.
//   - A standby goes to a process that does not have the task in any role: back to a member
//     of one that had it active, else as a standby, else to the process with the least load. If
//     there are too few processes there are fewer standbys.
//
// The load of a process is how many tasks it has for each of its members.
func Tasks(in *TaskInput) []TaskShare {
	if len(in.Members) == 0 {
		return nil
	}
	d := newTaskDealer(in)
	d.assignActive()
	if in.Standbys > 0 {
		d.assignStandbys()
	}
	return d.out
}

// taskDealer deals tasks. A task is a number here, and so are members and processes.
type taskDealer struct {
	in      *TaskInput
	out     []TaskShare
	first   []int32   // by subtopology: the number of its first task; one more at the end
	count   []int32   // by member: its tasks
	process []int32   // by member
	ranks   []heap    // by process: its members, the one with the fewest tasks first
	tasks   []int32   // by process: its tasks
	has     [][]int32 // by task: the processes that have it
	had     []int32   // by task: who had it active, nobody for none
	spare   [][]int32 // by task: who had it as a standby
	loads   heap      // of the processes, the one with the least load first
	work    int
	quota
}

// quota is how many tasks a member may have. It falls as members fill up.
type quota struct{ left, open, each int32 }

func newQuota(tasks, members int32) quota {
	q := quota{left: tasks, open: members}
	q.divide()
	return q
}

func (q *quota) divide() {
	if q.open > 0 {
		q.each = (q.left + q.open - 1) / q.open
	}
}

// fill notes that a member has as much as it may.
func (q *quota) fill(has int32) {
	q.left -= has
	q.open--
	q.divide()
}

func newTaskDealer(in *TaskInput) *taskDealer {
	n := len(in.Members)
	d := &taskDealer{in: in, out: make([]TaskShare, n), count: make([]int32, n), process: make([]int32, n), first: make([]int32, len(in.Subtopologies)+1)}
	for i, s := range in.Subtopologies {
		d.first[i+1] = d.first[i] + s.Tasks
	}
	total := int(d.first[len(in.Subtopologies)])
	d.has, d.spare, d.had = make([][]int32, total), make([][]int32, total), slices.Repeat([]int32{nobody}, total)
	d.rank()
	for m := range in.Members {
		mem := &in.Members[m]
		for _, t := range mem.Active {
			if i, ok := d.number(t); ok && d.had[i] == nobody {
				d.had[i] = int32(m)
			}
		}
		for _, t := range mem.Standby {
			if i, ok := d.number(t); ok {
				d.spare[i] = append(d.spare[i], int32(m))
			}
		}
	}
	return d
}

// rank puts members and processes into heaps.
func (d *taskDealer) rank() {
	numbers, at := map[string]int32{}, slices.Repeat([]int32{absent}, len(d.in.Members))
	var processes []int32
	for m := range d.in.Members {
		p, ok := numbers[d.in.Members[m].Process]
		if !ok {
			p = int32(len(processes))
			numbers[d.in.Members[m].Process], processes = p, append(processes, p)
			d.ranks = append(d.ranks, heap{at: at, work: &d.work, before: func(a, b int32) bool {
				return d.count[a] < d.count[b] || d.count[a] == d.count[b] && a < b
			}})
		}
		d.process[m] = p
		d.ranks[p].push(int32(m))
	}
	d.tasks = make([]int32, len(processes))
	d.loads = heap{at: slices.Repeat([]int32{absent}, len(processes)), work: &d.work, before: d.lessLoaded}
	d.loads.reset(processes)
}

// number returns the number of a task, if there is such a task.
func (d *taskDealer) number(t Task) (int32, bool) {
	if t.Subtopology < 0 || int(t.Subtopology) >= len(d.in.Subtopologies) || t.Partition < 0 || t.Partition >= d.in.Subtopologies[t.Subtopology].Tasks {
		return 0, false
	}
	return d.first[t.Subtopology] + t.Partition, true
}

// lessLoaded is the order of processes: by load, then by how they are numbered.
func (d *taskDealer) lessLoaded(p, q int32) bool {
	a, b := int64(d.tasks[p])*int64(len(d.ranks[q].items)), int64(d.tasks[q])*int64(len(d.ranks[p].items))
	if a != b {
		return a < b
	}
	return p < q
}

// each calls back with the tasks, by partition and then by subtopology: so tasks of one
// partition, which may share the data of it, come one after the other.
func (d *taskDealer) each(do func(Task)) {
	largest := int32(0)
	for _, s := range d.in.Subtopologies {
		largest = max(largest, s.Tasks)
	}
	open := make([]int32, len(d.in.Subtopologies))
	for i := range open {
		open[i] = int32(i)
	}
	for n := int32(0); n < largest; n++ {
		open = slices.DeleteFunc(open, func(s int32) bool { return d.in.Subtopologies[s].Tasks <= n })
		for _, s := range open {
			do(Task{s, n})
		}
	}
}

func (d *taskDealer) assignActive() {
	d.quota = newQuota(int32(len(d.had)), int32(len(d.in.Members)))
	var rest []Task
	d.each(func(t Task) {
		if i, _ := d.number(t); d.had[i] == nobody || !d.mayTake(d.had[i]) {
			rest = append(rest, t)
		} else {
			d.giveActive(t, d.had[i])
		}
	})
	var unknown []Task
	for _, t := range rest {
		i, _ := d.number(t)
		if m := d.leastOf(d.spare[i], i); m != nobody {
			d.giveActive(t, m)
		} else {
			unknown = append(unknown, t)
		}
	}
	for _, t := range unknown {
		d.giveActive(t, d.ranks[d.loads.first()].first())
	}
}

func (d *taskDealer) giveActive(t Task, m int32) {
	d.out[m].Active = append(d.out[m].Active, t)
	d.give(t, m)
}

// give notes that a member has another task.
func (d *taskDealer) give(t Task, m int32) {
	i, _ := d.number(t)
	p := d.process[m]
	d.has[i] = append(d.has[i], p)
	d.count[m]++
	d.tasks[p]++
	d.loads.fix(p)
	d.ranks[p].fix(m)
	if d.count[m] == d.quota.each {
		d.fill(d.count[m])
	}
}

// mayTake says whether a member has less than its share.
func (d *taskDealer) mayTake(m int32) bool { return d.count[m] < d.quota.each }

// leastOf is the member whose process has the least load of those that may take a task which
// their process does not have, nobody if none may.
func (d *taskDealer) leastOf(members []int32, task int32) int32 {
	var best int32 = nobody
	for _, m := range members {
		switch p := d.process[m]; {
		case !d.mayTake(m) || slices.Contains(d.has[task], p):
		case best == nobody, d.lessLoaded(p, d.process[best]), p == d.process[best] && d.count[m] < d.count[best]:
			best = m
		}
	}
	return best
}

func (d *taskDealer) assignStandbys() {
	stateful := int32(0)
	for _, s := range d.in.Subtopologies {
		if s.Stateful {
			stateful += s.Tasks
		}
	}
	copies := int32(min(d.in.Standbys, len(d.ranks)-1))
	d.quota = newQuota(int32(len(d.had))+stateful*copies, int32(len(d.in.Members)))
	for m := range d.in.Members {
		if d.count[m] >= d.quota.each {
			d.fill(d.count[m])
		}
	}
	for round := copies; round > 0; round-- {
		var rest []Task
		d.each(func(t Task) {
			if !d.in.Subtopologies[t.Subtopology].Stateful {
				return
			}
			i, _ := d.number(t)
			if m := d.knows(i); m != nobody {
				d.giveStandby(t, m)
			} else {
				rest = append(rest, t)
			}
		})
		for _, t := range rest {
			d.placeStandby(t)
		}
	}
}

func (d *taskDealer) giveStandby(t Task, m int32) {
	d.out[m].Standby = append(d.out[m].Standby, t)
	d.give(t, m)
}

// knows is who has the state of a task still and may take it: who had it active, or as a
// standby.
func (d *taskDealer) knows(task int32) int32 {
	if m := d.had[task]; m != nobody && d.mayTake(m) && !slices.Contains(d.has[task], d.process[m]) {
		return m
	}
	return d.leastOf(d.spare[task], task)
}

// placeStandby gives a standby to the process with the least load of those that do not have
// the task. There are as many standbys as there are other processes at most, so there is one.
func (d *taskDealer) placeStandby(t Task) {
	i, _ := d.number(t)
	var aside []int32
	for slices.Contains(d.has[i], d.loads.first()) {
		aside = append(aside, d.loads.first())
		d.loads.drop()
	}
	p := d.loads.first()
	for _, other := range aside {
		d.loads.push(other)
	}
	d.giveStandby(t, d.ranks[p].first())
}
