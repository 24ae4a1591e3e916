package topology

import (
	"fmt"
	"slices"
	"sort"

	"muster/internal/group/schema"
)

// countRepartitions finds out how many partitions repartition topics have: as many as is
// said, or as the largest source topic of the subtopologies that write it has. That may be a
// repartition topic as well, and the subtopologies may form a loop. So the largest numbers
// go down the topology first, each as far as it comes: whoever is reached has no larger one
// above it.
func (r *resolver) countRepartitions() {
	subs := r.t.Subtopologies
	readers, largest := map[string][]int{}, make([]int32, len(subs))
	for i := range subs {
		for j := range subs[i].Repartitions {
			info := &subs[i].Repartitions[j]
			readers[info.Name] = append(readers[info.Name], i)
			if info.Partitions > 0 {
				r.counts[info.Name] = info.Partitions
			}
		}
		sources(&subs[i], func(name string) { largest[i] = max(largest[i], r.counts[name]) })
	}
	order := make([]int, len(subs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(largest[b]) - int(largest[a]) })
	reached := make([]bool, len(subs))
	for _, from := range order {
		for queue := []int{from}; len(queue) > 0 && largest[from] > 0; queue = queue[1:] {
			at := queue[0]
			if reached[at] {
				continue
			}
			reached[at] = true
			for _, sink := range subs[at].Sinks {
				if r.infos[sink] != nil && r.counts[sink] == 0 {
					r.counts[sink] = largest[from]
					queue = append(queue, readers[sink]...)
				}
			}
		}
	}
	for i := range subs {
		for j := range subs[i].Repartitions {
			if name := subs[i].Repartitions[j].Name; r.counts[name] == 0 {
				r.Invalid = fmt.Sprintf("Failed to compute number of partitions for repartition topic %s.", name)
				return
			}
		}
	}
}

// enforceCopartitions has the topics of each copartition group have the same number of
// partitions: that of those that the application does not make, or of the repartition topics
// of which it is said; the others adapt, and if there are only others, to the largest.
func (r *resolver) enforceCopartitions() {
	for i := range r.t.Subtopologies {
		s := &r.t.Subtopologies[i]
		for j := range s.Copartitions {
			r.enforce(s, &s.Copartitions[j])
		}
	}
	for i := range r.t.Subtopologies { // A topic may be in several groups.
		s := &r.t.Subtopologies[i]
		for j := range s.Copartitions {
			if r.Problem == nil {
				r.compareAll(r.namesIn(s, &s.Copartitions[j]))
			}
		}
	}
}

// enforce gives the flexible topics of a group the number of the others.
func (r *resolver) enforce(s *schema.Subtopology, c *schema.Copartition) {
	var flexible []string
	largest, given := int32(0), int32(0)
	for _, name := range r.namesIn(s, c) {
		if info := r.infos[name]; info != nil && info.Partitions == 0 {
			flexible = append(flexible, name)
			largest = max(largest, r.counts[name])
		} else if given == 0 {
			given = r.counts[name]
		}
	}
	if given == 0 {
		given = largest
	}
	for _, name := range flexible {
		r.counts[name] = given
	}
}

// namesIn lists the topics of a copartition group.
func (r *resolver) namesIn(s *schema.Subtopology, c *schema.Copartition) []string {
	out := make([]string, 0, len(c.Sources)+len(c.Repartitions))
	for _, i := range c.Sources {
		out = append(out, s.Sources[i])
	}
	for _, i := range c.Repartitions {
		out = append(out, s.Repartitions[i].Name)
	}
	return out
}

// compareAll says which two topics differ that must not.
func (r *resolver) compareAll(names []string) {
	for _, name := range names {
		if first := names[0]; r.counts[name] != r.counts[first] {
			r.Problem = &Problem{WrongPartitions, fmt.Sprintf("Following topics do not have the same number of partitions: %s has %d, %s has %d.", first, r.counts[first], name, r.counts[name])}
			return
		}
	}
}

// countTasks counts the tasks of each subtopology. Members and people are told which partitions
// a task reads, of which a small topology may have very many: so those are bounded, and tasks
// with them.
func (r *resolver) countTasks() {
	total := int64(0)
	for i := range r.t.Subtopologies {
		s := &r.t.Subtopologies[i]
		out := Subtopology{ID: s.ID, Stateful: len(s.Changelogs) > 0}
		sources(s, func(name string) {
			out.Sources, out.Tasks = append(out.Sources, name), max(out.Tasks, r.counts[name])
			total += int64(r.counts[name])
		})
		slices.Sort(out.Sources)
		out.Sources = slices.Compact(out.Sources)
		r.Subtopologies = append(r.Subtopologies, out)
		if total > maxRead {
			r.Invalid = fmt.Sprintf("The topology reads more than %d partitions.", maxRead)
			return
		}
	}
	sort.Slice(r.Subtopologies, func(i, j int) bool { return compare(r.Subtopologies[i].ID, r.Subtopologies[j].ID) < 0 })
}

// compareInternal compares the internal topics with those that exist.
func (r *resolver) compareInternal() {
	for i := range r.t.Subtopologies {
		s := &r.t.Subtopologies[i]
		for j := range s.Repartitions {
			r.addInternal(&s.Repartitions[j], r.counts[s.Repartitions[j].Name])
		}
		for j := range s.Changelogs {
			if r.infos[s.Changelogs[j].Name] == nil {
				r.addInternal(&s.Changelogs[j], r.Find(s.ID).Tasks)
			}
		}
	}
	sort.SliceStable(r.Internal, func(i, j int) bool { return compare(r.Internal[i].Name, r.Internal[j].Name) < 0 })
	r.Internal = slices.CompactFunc(r.Internal, func(a, b Internal) bool { return a.Name == b.Name })
	var missing []string
	for _, t := range r.Internal {
		switch n := r.exists(t.Name); {
		case n == 0:
			r.Missing, missing = append(r.Missing, t), append(missing, t.Name)
		case n != t.Partitions:
			r.Missing = nil
			r.Problem = &Problem{WrongPartitions, fmt.Sprintf("Existing topic %s has different number of partitions: %d instead of %d", t.Name, n, t.Partitions)}
			return
		}
	}
	if len(missing) > 0 {
		r.Problem = &Problem{MissingInternal, "Internal topics are missing: [" + Listed(missing) + "]"}
	}
}

// addInternal notes that there must be a topic. One without partitions belongs to a
// subtopology without source topics, which has no tasks.
func (r *resolver) addInternal(info *schema.TopicInfo, partitions int32) {
	if partitions > 0 {
		r.Internal = append(r.Internal, Internal{Name: info.Name, Partitions: partitions, Replication: info.Replication, Configs: info.Configs})
	}
}
