// Package topology finds out what the topology of a streams application needs (KIP-1071):
// how many partitions each of its internal topics must have, how many tasks its
// subtopologies have, which of its topics are missing or have another number of partitions
// than they must, and which are to be created.
//
//	topology + partitions of the topics that exist → Resolve → Resolved
//
// It is a function of its input: it knows no group, and creates nothing.
package topology

import (
	"fmt"
	"maps"
	"slices"

	"muster/internal/group/schema"
)

// Subtopology is a part of a topology, as it was resolved.
type Subtopology struct {
	ID       string
	Sources  []string // of its records, internal ones included, by name
	Tasks    int32    // their largest number of partitions
	Stateful bool     // it has changelogs
}

// Internal is an internal topic, with the number of partitions that it must have.
type Internal struct {
	Name        string
	Partitions  int32
	Replication int16
	Configs     []schema.KeyValue
}

// Problem is what keeps a topology from being used. It is a status of StreamsGroupHeartbeat.
type Problem struct {
	Status Status
	Detail string
}

// Status is a code of StreamsGroupHeartbeat.
type Status int8

// The statuses.
const (
	StaleTopology   Status = 0
	MissingSources  Status = 1
	WrongPartitions Status = 2
	MissingInternal Status = 3
	Shutdown        Status = 4
	AssignmentWaits Status = 5
)

const (
	// maxRead is how many partitions all subtopologies may read.
	maxRead = 1 << 17
	// maxNamed is how many topics and copartition groups a topology may name, and maxID how
	// long the id of a subtopology may be, which is in each record of who has tasks of it.
	// Applications are far below that; what they need is found out under the shard's lock.
	maxNamed         = 5_000
	maxID            = 249
	maxNamedInDetail = 3
)

// Resolved is what a topology needs, as of some moment.
type Resolved struct {
	Subtopologies []Subtopology // by id
	Internal      []Internal    // all of them, by name
	Missing       []Internal    // those of them that do not exist
	// Problem is nil if the topology can be used. As long as it cannot, all that is known is
	// what was found before the problem was.
	Problem *Problem
	// Invalid says why the topology can never be used, "" if it can.
	Invalid string
}

// IsReady says whether the topology can be used.
func (r *Resolved) IsReady() bool { return r.Problem == nil && r.Invalid == "" }

// Tasks counts the tasks, with that many standbys of those that have state.
func (r *Resolved) Tasks(standbys int) (n int64) {
	for i := range r.Subtopologies {
		s := &r.Subtopologies[i]
		if n += int64(s.Tasks); s.Stateful {
			n += int64(s.Tasks) * int64(standbys)
		}
	}
	return n
}

// Has says whether there is a task.
func (r *Resolved) Has(subtopology string, n int32) bool {
	s := r.Find(subtopology)
	return s != nil && n >= 0 && n < s.Tasks
}

// Find finds a subtopology by its id, nil if there is none.
func (r *Resolved) Find(id string) *Subtopology {
	i, ok := slices.BinarySearchFunc(r.Subtopologies, id, func(s Subtopology, id string) int { return compare(s.ID, id) })
	if !ok {
		return nil
	}
	return &r.Subtopologies[i]
}

// Names lists the topics of a topology, sorted.
func Names(t *schema.StreamsTopology) []string {
	var out []string
	for i := range t.Subtopologies {
		s := &t.Subtopologies[i]
		out = append(append(out, s.Sources...), s.Sinks...)
		for _, list := range [][]schema.TopicInfo{s.Changelogs, s.Repartitions} {
			for j := range list {
				out = append(out, list[j].Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Check says what is wrong with a topology, whatever topics there are; "" if nothing is.
func Check(t *schema.StreamsTopology) string {
	ids, named := map[string]bool{}, 0
	for i := range t.Subtopologies {
		s := &t.Subtopologies[i]
		if named += 1 + len(s.Sources) + len(s.Sinks) + len(s.Changelogs) + len(s.Repartitions) + len(s.Copartitions); named > maxNamed {
			return fmt.Sprintf("The topology has more than %d subtopologies, topics and copartition groups.", maxNamed)
		}
		if len(s.ID) > maxID {
			return fmt.Sprintf("The id of a subtopology is longer than %d bytes.", maxID)
		}
		if ids[s.ID] {
			return fmt.Sprintf("Subtopology %s is there twice.", s.ID)
		}
		ids[s.ID] = true
		if len(s.Patterns) > 0 {
			return "Regular expressions for source topics are not supported yet."
		}
		if name := repeated(s); name != "" {
			return fmt.Sprintf("Subtopology %s names topic %s twice.", s.ID, name)
		}
		for _, c := range s.Changelogs {
			if c.Partitions != 0 {
				return fmt.Sprintf("Changelog topic %s must have an undefined partition count, but it is set to %d.", c.Name, c.Partitions)
			}
		}
		for _, r := range s.Repartitions {
			if r.Partitions < 0 {
				return fmt.Sprintf("Repartition topic %s cannot have %d partitions.", r.Name, r.Partitions)
			}
		}
		if len(s.Copartitions) > len(s.Sources)+len(s.Repartitions) {
			return fmt.Sprintf("Subtopology %s has more copartition groups than topics.", s.ID)
		}
		for _, c := range s.Copartitions {
			if !indexes(c.Sources, len(s.Sources)) || !indexes(c.Repartitions, len(s.Repartitions)) || len(c.Patterns) > 0 {
				return fmt.Sprintf("A copartition group of subtopology %s names a topic that it does not have.", s.ID)
			}
		}
	}
	return ""
}

// repeated is a topic that a list of a subtopology names twice, "" if there is none.
func repeated(s *schema.Subtopology) string {
	for _, list := range [][]string{s.Sources, s.Sinks} {
		seen := map[string]bool{}
		for _, name := range list {
			if seen[name] {
				return name
			}
			seen[name] = true
		}
	}
	for _, list := range [][]schema.TopicInfo{s.Changelogs, s.Repartitions} {
		seen := map[string]bool{}
		for i := range list {
			if seen[list[i].Name] {
				return list[i].Name
			}
			seen[list[i].Name] = true
		}
	}
	return ""
}

func indexes(list []int16, n int) bool {
	return !slices.ContainsFunc(list, func(i int16) bool { return i < 0 || int(i) >= n })
}

// Resolve finds out what a topology needs that passed Check. partitions says how many a topic
// has, 0 if it does not exist.
func Resolve(t *schema.StreamsTopology, partitions func(name string) int32) *Resolved {
	r := &resolver{Resolved: &Resolved{}, t: t, exists: partitions, counts: map[string]int32{}, infos: map[string]*schema.TopicInfo{}}
	for _, step := range []func(){r.collect, r.findSources, r.countRepartitions, r.enforceCopartitions, r.countTasks, r.compareInternal} {
		if step(); !r.IsReady() {
			break
		}
	}
	return r.Resolved
}

// resolver is a topology that is being resolved.
type resolver struct {
	*Resolved
	t      *schema.StreamsTopology
	exists func(string) int32
	counts map[string]int32             // of source topics, once they are known
	infos  map[string]*schema.TopicInfo // the repartition topics
}

// collect notes which topics are repartition topics.
func (r *resolver) collect() {
	for i := range r.t.Subtopologies {
		for j := range r.t.Subtopologies[i].Repartitions {
			info := &r.t.Subtopologies[i].Repartitions[j]
			if known := r.infos[info.Name]; known != nil && known.Partitions != info.Partitions {
				r.Invalid = fmt.Sprintf("Repartition topic %s is to have %d and %d partitions.", info.Name, known.Partitions, info.Partitions)
				return
			}
			r.infos[info.Name] = info
		}
	}
}

// findSources looks for the topics that the application does not make.
func (r *resolver) findSources() {
	missing := map[string]bool{}
	for i := range r.t.Subtopologies {
		for _, name := range r.t.Subtopologies[i].Sources {
			if r.infos[name] != nil {
				continue
			}
			if r.counts[name] = r.exists(name); r.counts[name] == 0 {
				missing[name] = true
			}
		}
	}
	if len(missing) > 0 {
		r.Problem = &Problem{MissingSources, "Source topics " + Listed(slices.Sorted(maps.Keys(missing))) + " are missing."}
	}
}

// Listed names the first of a list, and counts the others.
func Listed(names []string) string {
	out := ""
	for i, name := range names {
		switch {
		case i == maxNamedInDetail:
			return fmt.Sprintf("%s and %d more", out, len(names)-i)
		case i > 0:
			out += ", "
		}
		out += name
	}
	return out
}

// sources calls back with each source topic of a subtopology.
func sources(s *schema.Subtopology, do func(name string)) {
	for _, name := range s.Sources {
		do(name)
	}
	for i := range s.Repartitions {
		do(s.Repartitions[i].Name)
	}
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
