//go:build unix

package web

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster/internal/watch"
	"muster/internal/watch/list"
)

// changing is a broker whose snapshot is another one at each pass.
type changing struct {
	*fake
	now atomic.Pointer[watch.Snapshot]
}

func (c *changing) Snapshot() *watch.Snapshot { return c.now.Load() }

var manyLists = flag.Int("lists", 0, "how often to ask for each list of 100,000 groups, to measure that")

// TestManyLists measures, and asserts nothing: docs/internals/benchmarks.md has the numbers. It asks over
// HTTP for lists of 100,000 groups. Each fifth answer is the first from a new snapshot.
func TestManyLists(t *testing.T) {
	if *manyLists == 0 {
		t.Skip("it measures, with -lists=100")
	}
	const groups = 100_000
	states, findings := []string{"Stable", "Empty", "PreparingRebalance"}, [][]string{nil, nil, nil, {"stuck-partition"}, {"not-catching-up"}}
	all := make([]*list.GroupRow, groups)
	for i := range all {
		all[i] = &list.GroupRow{
			Name: fmt.Sprintf("group-%06d", i), Type: "classic", State: states[i%3], Members: i % 7, Partitions: 10, Lag: int64(i*7919%1_000_003) * int64(i%4),
			LagSeconds: float64(i * 104729 % 100_000), CatchUpSeconds: []*float64{nil, new(0.), new(60.), new(120.), new(180.)}[i%5], Findings: findings[i%5], Rebalanced: new(now.Add(-time.Duration(i) * time.Second)), Topics: []string{"orders", fmt.Sprint("topic-", i%1000)},
		}
	}
	c := &changing{fake: newFake(t)}
	pass := func() {
		s := *c.snapshot
		s.Groups = list.Of(all, sync.OnceFunc)
		c.now.Store(&s)
	}
	pass()
	s := serve(t, c.fake, func(o *Options) { o.Reads = c })
	deep := ""
	for range 60 {
		deep = read[GroupList](s, "/groups?sort=-lag&limit=1000&after="+deep).Next
	}
	for _, path := range []string{
		"/groups", "/groups?sort=-lag", "/groups?sort=-lagSeconds", "/groups?sort=catchUp", "/groups?sort=-members", "/groups?sort=state", "/groups?sort=type", "/groups?sort=-stuck", "/groups?sort=-rebalanced", "/groups?sort=-findings",
		"/groups?sort=-lag&after=" + deep, "/groups?q=99&sort=-lag", "/groups?q=nobody", "/groups?state=Empty&finding=any&sort=-lag", "/groups?topic=orders", "/groups?sort=-lag&limit=1000", "/overview", "/topics",
	} {
		var took []time.Duration
		spent := processor(t)
		for n := range *manyLists {
			if n%5 == 0 {
				pass()
			}
			began := time.Now()
			if resp, body := s.do(http.MethodGet, Prefix+path); resp.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("%-48s CPU %v (with its client), p50 %v, p99 %v", path[:min(len(path), 48)], ((processor(t) - spent) / time.Duration(len(took))).Round(10*time.Microsecond), took[len(took)/2].Round(10*time.Microsecond), took[len(took)*99/100].Round(10*time.Microsecond))
	}
}

// processor is how much of processors this process has taken.
func processor(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Skip(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
