package web

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/watch"
	"muster/internal/watch/explain"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
	"muster/internal/web/fleet"
	"muster/internal/web/problem"
)

var sortsOfGroups = []string{"name", "lag", "lagSeconds", "catchUp", "members", "state", "type", "stuck", "rebalanced", "findings"}

// manyGroups makes groups with many equal values.
func manyGroups(r *rand.Rand, n int) []list.GroupRow {
	var out []list.GroupRow
	for i := range n {
		s := list.GroupRow{
			Name: fmt.Sprintf("%c%d", 'a'+rune(r.IntN(26)), i), State: []string{"Stable", "Empty"}[r.IntN(2)], Type: "classic", Members: r.IntN(3), Lag: r.Int64N(4) << r.IntN(50),
			LagSeconds: float64(r.IntN(4)) / 3, CatchUpSeconds: []*float64{nil, new(0.), new(0.123456789), new(0.246913578)}[r.IntN(4)], Stuck: r.IntN(2), Rebalanced: new(now.Add(time.Duration(r.IntN(3)) * time.Second)),
		}
		if r.IntN(2) == 0 {
			kinds := explain.WatchedKinds[r.IntN(len(explain.WatchedKinds)):]
			for _, k := range kinds[:min(1+r.IntN(2), len(kinds))] {
				s.Findings = append(s.Findings, k.ID)
			}
		}
		out = append(out, s)
	}
	return out
}

// split gives each group to one of some brokers.
func split(r *rand.Rand, groups []list.GroupRow, n int) []*fake {
	parts := make([][]list.GroupRow, n)
	for _, g := range groups {
		i := r.IntN(n)
		parts[i] = append(parts[i], g)
	}
	var out []*fake
	for _, p := range parts {
		out = append(out, having(p))
	}
	return out
}

// having is a broker that has some groups.
func having(groups []list.GroupRow) *fake {
	return &fake{snapshot: &watch.Snapshot{At: now, Groups: list.Build(groups)}, denies: map[string]bool{}, image: metadata.NewImage(&config.Broker{}), tracker: lag.NewTracker(lag.Limits{}, nil)}
}

func apiOf(f *fake) *api { return &api{reads: f, gate: f, health: func() Health { return Health{} }} }

// Pages of a fleet, one after the other, are the list that one broker with all groups has.
func TestPagesOfAFleetAreTheWholeList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		groups := manyGroups(r, r.IntN(60))
		brokers := split(r, groups, 1+r.IntN(4))
		q := GroupsQuery{Sort: []string{"", "-"}[r.IntN(2)] + sortsOfGroups[r.IntN(len(sortsOfGroups))], Limit: 1 + r.IntN(20)}
		all := having(slices.Clone(groups))
		whole, err := apiOf(all).ownGroups(&call{}, &GroupsQuery{Sort: q.Sort, Limit: list.MaxLimit})
		must(t, err)
		var got []string
		for pages := 0; ; pages++ {
			var answers []told[keyedGroups]
			for i, f := range brokers {
				page, err := apiOf(f).ownGroups(&call{}, &q)
				must(t, err)
				answers = append(answers, told[keyedGroups]{int32(i), page})
			}
			out := mergeGroups(answers, q.Sort[0] == '-', q.Limit, func(string) int32 { return 0 })
			if q.After == "" && (*out.Matched != len(groups) || *out.Total != len(groups)) {
				t.Fatalf("round %d: %d of %d", round, *out.Matched, *out.Total)
			}
			for _, g := range out.Groups {
				got = append(got, g.Name)
			}
			if q.After = out.Next; q.After == "" {
				break
			}
			assert.MustTrue(t, len(out.Groups) == q.Limit && pages <= len(groups), "round %d: a page of %d, and more to come", round, len(out.Groups))
		}
		var want []string
		for _, g := range whole.Groups {
			want = append(want, g.Name)
		}
		assert.MustEqualSlices(t, got, want, "round %d, %+v", round, q)
	}
}

// A group that two brokers tell of is told once, as its coordinator has it, and no page
// goes beyond what is known.
func TestAGroupThatMovedIsToldOnce(t *testing.T) {
	page := func(next string, groups ...GroupRow) *keyedGroups {
		out := &keyedGroups{GroupList: GroupList{Groups: groups, Next: next}}
		for _, g := range groups {
			out.Keys = append(out.Keys, (&list.Query{}).Cursor(&list.GroupRow{Name: g.Name}))
		}
		return out
	}
	for coordinator := range int32(2) {
		out := mergeGroups([]told[keyedGroups]{
			{0, page("more", GroupRow{Name: "a", Lag: 0}, GroupRow{Name: "b", Lag: 0})}, {1, page("", GroupRow{Name: "a", Lag: 1}, GroupRow{Name: "c", Lag: 1})},
		}, false, 2, func(string) int32 { return coordinator })
		if rowNames(out.Groups) != "a b" || out.Groups[0].Lag != int64(coordinator) || out.Next == "" || out.Matched != nil {
			t.Errorf("coordinator %d: %+v", coordinator, out)
		}
	}
}

func TestTheWorstOfAFleetAreThoseOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		groups := manyGroups(r, r.IntN(40))
		limit := 1 + r.IntN(30)
		all := having(slices.Clone(groups))
		want, err := apiOf(all).ownOverview(&call{}, &OverviewQuery{Limit: limit})
		must(t, err)
		var rows []NeedyRow
		for _, f := range split(r, groups, 3) {
			o, err := apiOf(f).ownOverview(&call{}, &OverviewQuery{Limit: limit})
			must(t, err)
			rows = append(rows, o.Worst...)
		}
		got := worstOf(rows, limit)
		assert.MustTrue(t, slices.EqualFunc(got, want.Worst, func(x, y NeedyRow) bool { return x.Name == y.Name }), "%+v, want %+v", got, want.Worst)
	}
}

func TestTheLatestEntriesOfAFleetAreKept(t *testing.T) {
	var entries []JournalEntry
	for _, i := range []int{3, 1, 2, 5, 4} {
		entries = append(entries, JournalEntry{Generation: int32(i), Time: now.Add(time.Duration(i) * time.Second)})
	}
	got, more := latestOf(entries, 2)
	assert.True(t, more && len(got) == 2 && got[0].Generation == 4 && got[1].Generation == 5, "%+v, more %t", got, more)
	if all, more := latestOf(entries, 5); more || len(all) != 5 {
		t.Errorf("%+v, more %t", all, more)
	}
}

// When to try again is told as the broker said it that was asked.
func TestAQuotaOfAnotherBrokerSaysWhenToTryAgain(t *testing.T) {
	for wait, want := range map[time.Duration]string{0: "1", 6500 * time.Millisecond: "7"} {
		body, err := problem.Encode(problem.Of(&problem.Refused{Code: kerr.ThrottlingQuotaExceeded.Code, Wait: wait}))
		must(t, err)
		w := httptest.NewRecorder()
		(&api{}).refuse(w, problemFrom(&fleet.Answer{Status: http.StatusTooManyRequests, Body: body}))
		if got := w.Header().Get("Retry-After"); got != want || w.Code != http.StatusTooManyRequests || w.Body.String() != string(body) {
			t.Errorf("of %s it says %d, %q, %s", wait, w.Code, got, w.Body)
		}
	}
}

func TestTheOldestLookCounts(t *testing.T) {
	a, b := now, now.Add(time.Second)
	assert.True(t, oldest(nil, &b) == &b && oldest(&a, nil) == &a && oldest(&b, &a) == &a && oldest(nil, nil) == nil, "it is not the oldest")
}
