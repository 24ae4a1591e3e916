package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"muster/internal/assert"
	"muster/internal/group/schema"
)

// A topology is written as subtopologies, each "sources > sinks / changelogs = copartitioned
// with one another": r3 is repartition topic r with 3 partitions, r? one that says nothing.
//
//	0: a r? > s / c = a+r
func parse(t *testing.T, text string) *schema.StreamsTopology {
	t.Helper()
	out := &schema.StreamsTopology{Epoch: 1}
	for part := range strings.SplitSeq(text, ";") {
		id, rest, ok := strings.Cut(strings.TrimSpace(part), ":")
		assert.True(t, ok, "a subtopology has an id")
		rest, groups, _ := strings.Cut(rest, "=")
		rest, changelogs, _ := strings.Cut(rest, "/")
		from, to, _ := strings.Cut(rest, ">")
		s := schema.Subtopology{ID: id, Sinks: strings.Fields(to)}
		for _, name := range strings.Fields(from) {
			base, n, internal := strings.Cut(name, "?")
			if internal {
				info := schema.TopicInfo{Name: base}
				if n != "" {
					_, _ = fmt.Sscan(n, &info.Partitions)
				}
				s.Repartitions = append(s.Repartitions, info)
			} else {
				s.Sources = append(s.Sources, name)
			}
		}
		for _, name := range strings.Fields(changelogs) {
			s.Changelogs = append(s.Changelogs, schema.TopicInfo{Name: name})
		}
		for _, group := range strings.Fields(groups) {
			var c schema.Copartition
			for name := range strings.SplitSeq(group, "+") {
				if i := slices.Index(s.Sources, name); i >= 0 {
					c.Sources = append(c.Sources, int16(i))
				} else {
					c.Repartitions = append(c.Repartitions, int16(slices.IndexFunc(s.Repartitions, func(r schema.TopicInfo) bool { return r.Name == name })))
				}
			}
			s.Copartitions = append(s.Copartitions, c)
		}
		out.Subtopologies = append(out.Subtopologies, s)
	}
	return out
}

// show says what was found: tasks by subtopology, * for a stateful one, then internal topics,
// + for one that is missing.
func show(r *Resolved) string {
	var out []string
	if r.Invalid != "" {
		return "invalid: " + r.Invalid
	}
	if r.Problem != nil && r.Problem.Status != MissingInternal {
		return fmt.Sprintf("status %d: %s", r.Problem.Status, r.Problem.Detail)
	}
	for _, s := range r.Subtopologies {
		text := fmt.Sprintf("%s×%d", s.ID, s.Tasks)
		if s.Stateful {
			text += "*"
		}
		out = append(out, text)
	}
	for _, i := range r.Internal {
		text := fmt.Sprintf("%s:%d", i.Name, i.Partitions)
		if slices.ContainsFunc(r.Missing, func(m Internal) bool { return m.Name == i.Name }) {
			text += "+"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestATopologyIsResolved(t *testing.T) {
	topics := map[string]int32{"a": 4, "b": 2, "b2": 2, "c": 6, "made": 4}
	for _, c := range []struct{ what, topology, want string }{
		{"one topic", "0: a", "0×4"},
		{"tasks are as many as the largest source topic has partitions", "0: a b", "0×4"},
		{"a changelog has as many partitions as there are tasks", "0: a b / log", "0×4* log:4+"},
		{"an internal topic that exists", "0: a / made", "0×4* made:4"},
		{"an internal topic with another number", "0: b / made", "status 2: Existing topic made has different number of partitions: 4 instead of 2"},
		{"a missing source", "0: a x", "status 1: Source topics x are missing."},
		{"many missing sources", "0: p q; 1: r s t", "status 1: Source topics p, q, r and 2 more are missing."},
		{"a repartition topic has as many as the largest topic above it", "0: a b > r; 1: r?", "0×4 1×4 r:4+"},
		{"a repartition topic of several writers", "0: b > r; 1: c > r; 2: r?", "0×2 1×6 2×6 r:6+"},
		{"a repartition topic that says how many", "0: a > r; 1: r?3 / log", "0×4 1×3* log:3+ r:3+"},
		{"a chain, whatever the order", "2: s? > u; 0: a > r; 1: r? b > s; 3: u?", "0×4 1×4 2×4 3×4 r:4+ s:4+ u:4+"},
		{"a chain goes on from what is said", "0: a > r; 1: r?3 > s; 2: s?", "0×4 1×3 2×3 r:3+ s:3+"},
		{"a loop", "0: a s? > r; 1: r? c > s", "0×6 1×6 r:6+ s:6+"},
		{"a subtopology that writes what it reads", "0: b r? > r", "0×2 r:2+"},
		{"a loop without a beginning", "0: s? > r; 1: r? > s", "invalid: Failed to compute number of partitions for repartition topic s."},
		{"a repartition topic that no one writes", "0: a; 1: r?", "invalid: Failed to compute number of partitions for repartition topic r."},
		{"two numbers for one topic", "0: a > r; 1: r?3; 2: r?4", "invalid: Repartition topic r is to have 3 and 4 partitions."},
		{"topics that are copartitioned", "0: b b2 = b+b2", "0×2"},
		{"topics that are not", "0: a b = a+b", "status 2: Following topics do not have the same number of partitions: a has 4, b has 2."},
		{"a flexible topic has the number of the others", "0: a > r; 1: r? b = r+b", "0×4 1×2 r:2+"},
		{"a fixed topic must match", "0: a > r; 1: b r?3 = b+r", "status 2: Following topics do not have the same number of partitions: b has 2, r has 3."},
		{"a flexible topic has the number of a fixed one", "0: a > r; 1: c > s; 2: r? s?3 = r+s", "0×4 1×6 2×3 r:3+ s:3+"},
		{"two fixed ones must match", "0: a > r s; 2: r?2 s?3 = r+s", "status 2: Following topics do not have the same number of partitions: r has 2, s has 3."},
		{"flexible topics have the largest number", "0: a > r; 1: c > s; 2: r? s? = r+s", "0×4 1×6 2×6 r:6+ s:6+"},
		{"a topic in two groups that do not agree", "0: a > r; 1: r? b c = r+b r+c", "status 2: Following topics do not have the same number of partitions: b has 2, r has 6."},
		{"too many tasks", strings.Repeat("x: huge;", 1) + "y: huge", "invalid: The topology reads more than 131072 partitions."},
	} {
		got := show(Resolve(parse(t, c.topology), func(name string) int32 {
			if name == "huge" {
				return 100_000
			}
			return topics[name]
		}))
		assert.Equal(t, got, c.want, c.what)
	}
}

func TestStandbysAreOfTasksWithState(t *testing.T) {
	r := Resolve(parse(t, "0: a / log; 1: b"), func(string) int32 { return 3 })
	assert.Equal(t, r.Tasks(0), 6, "tasks")
	assert.Equal(t, r.Tasks(2), 12, "tasks with standbys")
}

func TestATopologyThatCannotBeIsRefused(t *testing.T) {
	ok := func() *schema.StreamsTopology { return parse(t, "0: a r? / log = a+r; 1: b") }
	assert.Equal(t, Check(ok()), "")
	for _, c := range []struct {
		what   string
		change func(*schema.Subtopology)
		want   string
	}{
		{"a regular expression", func(s *schema.Subtopology) { s.Patterns = []string{"x.*"} }, "Regular expressions for source topics are not supported yet."},
		{"a changelog with a number", func(s *schema.Subtopology) { s.Changelogs[0].Partitions = 3 }, "Changelog topic log must have an undefined partition count, but it is set to 3."},
		{"a source twice", func(s *schema.Subtopology) { s.Sources = []string{"a", "a"} }, "Subtopology 0 names topic a twice."},
		{"a changelog twice", func(s *schema.Subtopology) { s.Changelogs = append(s.Changelogs, s.Changelogs[0]) }, "Subtopology 0 names topic log twice."},
		{"a negative number", func(s *schema.Subtopology) { s.Repartitions[0].Partitions = -3 }, "Repartition topic r cannot have -3 partitions."},
		{"too many copartition groups", func(s *schema.Subtopology) { s.Copartitions = slices.Repeat(s.Copartitions, 3) }, "Subtopology 0 has more copartition groups than topics."},
		{"an id without end", func(s *schema.Subtopology) { s.ID = strings.Repeat("x", maxID+1) }, "The id of a subtopology is longer than 249 bytes."},
		{"too many topics", func(s *schema.Subtopology) {
			for i := range maxNamed - 6 {
				s.Sources = append(s.Sources, fmt.Sprint(i))
			}
		}, "The topology has more than 5000 subtopologies, topics and copartition groups."},
		{"an id twice", func(s *schema.Subtopology) { s.ID = "1" }, "Subtopology 1 is there twice."},
		{"an index too high", func(s *schema.Subtopology) { s.Copartitions[0].Sources[0] = 1 }, "A copartition group of subtopology 0 names a topic that it does not have."},
		{"a negative index", func(s *schema.Subtopology) { s.Copartitions[0].Repartitions[0] = -1 }, "A copartition group of subtopology 0 names a topic that it does not have."},
	} {
		bad := ok()
		c.change(&bad.Subtopologies[0])
		assert.Equal(t, Check(bad), c.want, c.what)
	}
}

// The order in which subtopologies are told does not matter, and repartition topics have the
// number that going round until nothing changes gives.
func TestCountsAreTheLeastFixedPoint(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 31))
	for round := range 2000 {
		top := &schema.StreamsTopology{}
		n := 1 + rng.IntN(6)
		for i := range n {
			s := schema.Subtopology{ID: fmt.Sprint(i)}
			if rng.IntN(2) == 0 {
				s.Sources = []string{fmt.Sprintf("t%d", 1+rng.IntN(9))}
			}
			for range rng.IntN(3) {
				s.Repartitions = append(s.Repartitions, schema.TopicInfo{Name: fmt.Sprintf("r%d", rng.IntN(n))})
			}
			for range rng.IntN(3) {
				s.Sinks = append(s.Sinks, fmt.Sprintf("r%d", rng.IntN(n)))
			}
			top.Subtopologies = append(top.Subtopologies, s)
		}
		exists := func(name string) (k int32) {
			if name[0] == 't' {
				_, _ = fmt.Sscan(name[1:], &k)
			}
			return k
		}
		got := Resolve(top, exists)
		counts, undecided := fixedPoint(top, exists), false
		for _, s := range top.Subtopologies {
			for _, r := range s.Repartitions {
				undecided = undecided || counts[r.Name] == 0
			}
		}
		assert.Equal(t, got.Invalid != "", undecided, "topology", round)
		for _, i := range got.Internal {
			assert.Equal(t, i.Partitions, counts[i.Name], i.Name)
		}
		rng.Shuffle(n, func(i, j int) {
			top.Subtopologies[i], top.Subtopologies[j] = top.Subtopologies[j], top.Subtopologies[i]
		})
		if !undecided {
			assert.Equal(t, show(Resolve(top, exists)), show(got), "in another order")
		}
	}
}

func fixedPoint(top *schema.StreamsTopology, exists func(string) int32) map[string]int32 {
	counts := map[string]int32{}
	for changed := true; changed; {
		changed = false
		for _, s := range top.Subtopologies {
			largest := int32(0)
			for _, name := range s.Sources {
				largest = max(largest, exists(name))
			}
			for _, r := range s.Repartitions {
				largest = max(largest, counts[r.Name])
			}
			for _, sink := range s.Sinks {
				if counts[sink] < largest {
					counts[sink], changed = largest, true
				}
			}
		}
	}
	return counts
}
