package list

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	someStates   = []string{"Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Dead", "Assigning", "Reconciling"}
	someTypes    = []string{"classic", "consumer", "share"}
	someFindings = []string{"stuck-partition", "lag-without-members", "not-catching-up"}
	someTopics   = []string{"orders", "clicks", "payments"}
)

// some makes groups, with many equal values.
func some(r *rand.Rand, n int) []GroupRow {
	out := make([]GroupRow, 0, n)
	for i := range n {
		s := GroupRow{
			Name: fmt.Sprintf("%s-%d", []string{"Billing", "search", "audit"}[r.IntN(3)], i*7919%n), State: someStates[r.IntN(7)], Type: someTypes[r.IntN(3)],
			Members: r.IntN(3), Lag: r.Int64N(5) << r.IntN(50), LagSeconds: float64(r.IntN(4)) * 1.5, CatchUpSeconds: []*float64{nil, new(0.), new(60.), new(0.5)}[r.IntN(4)],
			Stuck: r.IntN(2), Topics: someTopics[:r.IntN(4)],
		}
		if r.IntN(3) > 0 {
			s.Rebalanced = new(time.UnixMilli(r.Int64N(1 << 42)))
		}
		if r.IntN(2) == 0 {
			s.Findings = someFindings[r.IntN(3):]
		}
		out = append(out, s)
	}
	return out
}

// naive answers a query without pages by comparing.
func naive(groups []GroupRow, q *Query) []string {
	var kept []GroupRow
	for _, s := range groups {
		one := func(wanted, have []string) bool {
			for _, w := range wanted {
				if slices.Contains(have, w) {
					return true
				}
			}
			return len(wanted) == 0
		}
		if one(q.States, []string{s.State}) && one(q.Types, []string{s.Type}) && one(q.Findings, s.Findings) &&
			(!q.Found || len(s.Findings) > 0) && (q.Topic == "" || slices.Contains(s.Topics, q.Topic)) &&
			strings.Contains(strings.ToLower(s.Name), strings.ToLower(q.Text)) {
			kept = append(kept, s)
		}
	}
	never := func(seconds *float64) float64 {
		if seconds == nil {
			return math.Inf(1)
		}
		return *seconds
	}
	when := func(at *time.Time) time.Time {
		if at == nil {
			return time.Time{}
		}
		return *at
	}
	slices.SortFunc(kept, func(a, b GroupRow) int {
		c := [...]int{
			ByName: 0, ByLag: cmp.Compare(a.Lag, b.Lag), BySeconds: cmp.Compare(a.LagSeconds, b.LagSeconds), ByCatchUp: cmp.Compare(never(a.CatchUpSeconds), never(b.CatchUpSeconds)),
			ByMembers: cmp.Compare(a.Members, b.Members), ByState: cmp.Compare(a.State, b.State), ByType: cmp.Compare(a.Type, b.Type),
			ByStuck: cmp.Compare(a.Stuck, b.Stuck), ByRebalanced: when(a.Rebalanced).Compare(when(b.Rebalanced)), ByFindings: cmp.Compare(len(a.Findings), len(b.Findings)),
		}[q.Sort]
		c = cmp.Or(c, cmp.Compare(a.Name, b.Name))
		if q.Reverse {
			c = -c
		}
		return c
	})
	var names []string
	for _, s := range kept {
		names = append(names, s.Name)
	}
	return names
}

// pick returns some of the values, mostly none.
func pick(r *rand.Rand, of []string) []string {
	if r.IntN(3) > 0 {
		return nil
	}
	return of[r.IntN(len(of)):]
}

func TestPagesHoldWhatComparingFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 300} {
		groups := some(r, n)
		x := Build(slices.Clone(groups))
		for range 300 {
			q := Query{
				Text: []string{"", "", "BILL", "-1", "nobody"}[r.IntN(5)], States: pick(r, someStates), Types: pick(r, someTypes), Findings: pick(r, someFindings),
				Found: r.IntN(4) == 0, Topic: []string{"", "", "clicks"}[r.IntN(3)], Sort: Sort(r.IntN(int(sorts))), Reverse: r.IntN(2) == 0, Limit: 1 + r.IntN(60),
			}
			want := naive(groups, &q)
			var got []string
			for pages := 0; ; pages++ {
				page, err := x.Find(&q)
				if err != nil {
					t.Fatal(err)
				}
				if first := q.After == ""; page.Total != n || first && page.Matched != len(want) || !first && page.Matched != -1 {
					t.Fatalf("%+v: %d matched of %d, want %d", q, page.Matched, page.Total, len(want))
				}
				for _, s := range page.Groups {
					got = append(got, s.Name)
				}
				if page.Next == "" {
					break
				}
				if len(page.Groups) != q.Limit || pages > n {
					t.Fatalf("%+v: a page of %d, and more to come", q, len(page.Groups))
				}
				q.After = page.Next
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%+v:\n%v, want\n%v", q, got, want)
			}
		}
	}
}

func TestCursorIsGoodInTheNextIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	groups := some(r, 200)
	for _, reverse := range []bool{false, true} {
		q := Query{Sort: ByLag, Reverse: reverse, Limit: 50}
		page, err := Build(slices.Clone(groups)).Find(&q)
		if err != nil {
			t.Fatal(err)
		}
		last := page.Groups[49]
		q.After = page.Next
		// The group that the cursor names is gone, and others have come.
		next := append(slices.DeleteFunc(slices.Clone(groups), func(s GroupRow) bool { return s.Name == last.Name }), GroupRow{Name: "A", Lag: last.Lag}, GroupRow{Name: "z", Lag: last.Lag})
		page, err = Build(slices.Clone(next)).Find(&q)
		if err != nil {
			t.Fatal(err)
		}
		all := naive(next, &Query{Sort: ByLag, Reverse: reverse})
		var want []string
		for _, name := range all {
			i := slices.IndexFunc(next, func(s GroupRow) bool { return s.Name == name })
			c := cmp.Or(cmp.Compare(next[i].Lag, last.Lag), cmp.Compare(name, last.Name))
			if c > 0 != reverse {
				want = append(want, name)
			}
		}
		var got []string
		for _, s := range page.Groups {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, want[:50]) {
			t.Errorf("reverse %t: %v, want %v", reverse, got, want[:50])
		}
	}
}

func TestBadQueriesAreRefused(t *testing.T) {
	x := Build(some(rand.New(rand.NewPCG(5, 6)), 10))
	page, err := x.Find(&Query{Limit: 3, Sort: ByLag})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		q    Query
		want error
	}{
		"a limit below 0":           {Query{Limit: -1}, ErrQuery},
		"a page without end":        {Query{Limit: MaxLimit + 1}, ErrQuery},
		"an order nobody knows":     {Query{Sort: sorts}, ErrQuery},
		"a long text":               {Query{Text: strings.Repeat("x", MaxText+1)}, ErrQuery},
		"many states":               {Query{States: make([]string, MaxValues+1)}, ErrQuery},
		"many types":                {Query{Types: make([]string, MaxValues+1)}, ErrQuery},
		"many findings":             {Query{Findings: make([]string, MaxValues+1)}, ErrQuery},
		"no cursor":                 {Query{After: "!"}, ErrCursor},
		"half a cursor":             {Query{After: page.Next[:6], Sort: ByLag}, ErrCursor},
		"the cursor of another":     {Query{After: page.Next, Sort: ByMembers}, ErrCursor},
		"a cursor that is too long": {Query{After: strings.Repeat("A", maxCursor+4)}, ErrCursor},
	} {
		if _, err := x.Find(&c.q); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if page, err := x.Find(&Query{}); err != nil || len(page.Groups) != 10 {
		t.Errorf("the zero query: %v, %v", page, err)
	}
}

func TestSortsHaveNames(t *testing.T) {
	for s := range sorts {
		for _, reverse := range []bool{false, true} {
			name := s.String()
			if reverse {
				name = "-" + name
			}
			if got, r, ok := ParseSort(name); got != s || r != reverse || !ok {
				t.Errorf("%s: %v, %t, %t", name, got, r, ok)
			}
		}
	}
	for _, name := range []string{"", "-", "size"} {
		if _, _, ok := ParseSort(name); ok {
			t.Errorf("%q is an order", name)
		}
	}
}

func TestTopicsKnowTheirGroups(t *testing.T) {
	x := Build([]GroupRow{{Name: "b", Topics: []string{"t", "u", "t"}}, {Name: "a", Topics: []string{"t"}, Lag: 1}, {Name: "c"}, {Name: "a", Lag: 2}})
	var got []string
	for _, s := range x.Reading("t") {
		got = append(got, s.Name)
	}
	if !slices.Equal(got, []string{"a", "b"}) || len(x.Reading("v")) != 0 || x.CountReading("t") != 2 || x.CountReading("v") != 0 || x.Len() != 3 {
		t.Errorf("%v of %d", got, x.Len())
	}
	if s, ok := x.Get("a"); !ok || s.Lag != 1 {
		t.Errorf("%+v", s)
	}
	if _, ok := x.Get("aa"); ok {
		t.Error("there is no aa")
	}
}

func TestIndexDoesNotChangeWithItsQueries(t *testing.T) {
	x := Build(some(rand.New(rand.NewPCG(7, 8)), 50))
	var before []GroupRow
	for s := range x.All() {
		before = append(before, *s)
	}
	for s := range sorts {
		if _, err := x.Find(&Query{Sort: s, Reverse: true, Limit: 7}); err != nil {
			t.Fatal(err)
		}
	}
	var after []GroupRow
	for s := range x.All() {
		after = append(after, *s)
	}
	if !reflect.DeepEqual(before, after) {
		t.Error("a query has changed the index")
	}
}

// BenchmarkOrders is what the first questions after a pass cost more than others.
func BenchmarkOrders(b *testing.B) {
	all := slices.Collect(Build(some(rand.New(rand.NewPCG(1, 1)), 100_000)).All())
	for by := range sorts {
		b.Run(by.String(), func(b *testing.B) {
			for b.Loop() {
				Of(all, atOnce).order(by)
			}
		})
	}
	b.Run("topics", func(b *testing.B) {
		for b.Loop() {
			Of(all, atOnce).index()
		}
	})
}

func BenchmarkFind(b *testing.B) {
	x := Build(some(rand.New(rand.NewPCG(1, 1)), 100_000))
	for name, q := range map[string]*Query{
		"top":    {Sort: ByLag, Reverse: true},
		"search": {Sort: ByLag, Reverse: true, Text: "BILLING-99", States: []string{"Stable"}},
		"none":   {Text: "nobody"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := x.Find(q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Who may not see all groups is not told how many there are.
func TestWhoSeesSomeGroupsIsNotToldOfTheOthers(t *testing.T) {
	x := Of([]*GroupRow{{Name: "a"}, {Name: "b"}, {Name: "c"}}, func(f func()) func() { return f })
	for what, c := range map[string]struct {
		q              Query
		matched, total int
	}{
		"all":  {Query{}, 3, 3},
		"some": {Query{Sees: func(name string) bool { return name != "b" }}, 2, -1},
		"none": {Query{Sees: func(string) bool { return false }}, 0, -1},
	} {
		page, err := x.Find(&c.q)
		if err != nil || len(page.Groups) != c.matched || page.Matched != c.matched || page.Total != c.total {
			t.Errorf("%s: %+v, %v", what, page, err)
		}
	}
}
