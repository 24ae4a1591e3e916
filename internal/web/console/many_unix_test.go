//go:build unix

package console_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"muster/internal/assert"
	"muster/internal/watch/lag"
	"muster/internal/web"
)

var many = flag.Int("many", 0, "measure pages and answers with so many groups of ten partitions")

// TestManyGroups measures, and asserts nothing: docs/internals/benchmarks.md has the numbers.
func TestManyGroups(t *testing.T) {
	if *many == 0 {
		t.Skip("it measures, with -many=100000")
	}
	w := newWorld(t)
	ctx := t.Context()
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / 1e6
	}
	for name, partitions := range map[string]int32{topic: 10, "wide": 10_000} {
		if _, err := w.admin.CreateTopic(ctx, partitions, 1, nil, name); err != nil {
			t.Fatal(err)
		}
	}
	w.produce(300)
	began := time.Now()
	w.commitAll(*many, 1, 1)
	before := heap()
	t.Logf("%d groups have committed in %v; the heap has %.0f MB", *many, time.Since(began).Round(time.Second), before)
	for i := range 2 {
		w.commitAll(*many, 1, int64(2+i))
		spent := processor(t)
		w.broker.Status().Pass(ctx)
		t.Logf("a pass after all have committed: %v of CPU", processor(t)-spent)
	}
	spent := processor(t)
	w.broker.Status().Pass(ctx)
	t.Logf("a pass while they rest: %v of CPU", processor(t)-spent)
	w.broker.Status().Read(func(k *lag.Tracker) {
		t.Logf("history counts %.1f MB of 128 MiB", float64(k.Bytes())/1e6)
	})
	t.Logf("with history, rolls and the last snapshot the heap has %.0f MB more", heap()-before)

	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // The list changes all the time.
		defer close(done)
		for at := int64(6); ; at++ {
			select {
			case <-stop:
				return
			default:
				w.commitAll(*many, 100, at)
				w.broker.Status().Pass(ctx)
			}
		}
	}()
	base := "http://" + w.broker.HTTPAddr()
	deep := "/groups?sort=-lag&after=" + w.deep(base)
	for _, path := range []string{
		"/groups", "/groups?sort=-lag", "/groups?sort=-lagSeconds", "/groups?sort=catchUp", "/groups?sort=-members", "/groups?sort=state", "/groups?sort=-rebalanced",
		"/groups?q=99&sort=-lag", "/groups?state=Empty&finding=any&sort=-lag", "/groups?topic=" + topic, deep, "/groups?limit=1000&sort=-lag", "/overview", "/topics", "/topics/" + topic, "/topics/wide",
	} {
		w.measure(base+web.Prefix+path, path[:min(len(path), 60)], 100)
	}
	spent = processor(t)
	const scrapes = 5
	for range scrapes {
		w.measure(base+"/metrics", "/metrics", 1)
	}
	t.Logf("%d scrapes: %v of CPU each, with passes and commits at the same time", scrapes, (processor(t)-spent)/scrapes)
	close(stop)
	<-done
	spent = processor(t)
	lines := 0
	for range scrapes {
		lines = w.measure(base+"/metrics", "/metrics at rest", 1)
	}
	t.Logf("%d scrapes of %d lines: %v of CPU each", scrapes, lines, (processor(t)-spent)/scrapes)
	w.paint(browser(t, base))
}

// commitAll has every so manieth group commit, many at once.
func (w *world) commitAll(groups, every int, at int64) {
	const workers = 16
	for len(w.committers) < workers {
		w.committers = append(w.committers, w.client(kgo.MaxVersions(kversion.V3_7_0()))) // Which names topics.
	}
	var running sync.WaitGroup
	for n, c := range w.committers {
		running.Go(func() {
			for g := n * every; g < groups; g += workers * every {
				if err := commitOne(w.t.Context(), c, fmt.Sprintf("group-%06d", g), at); err != nil {
					w.t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

func commitOne(ctx context.Context, c *kgo.Client, name string, at int64) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = name, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	for p := range int32(10) {
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		part.Partition, part.Offset = p, at
		t.Partitions = append(t.Partitions, part)
	}
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c)
	if err == nil && resp.Topics[0].Partitions[0].ErrorCode != 0 {
		err = fmt.Errorf("%s: error %d", name, resp.Topics[0].Partitions[0].ErrorCode)
	}
	return err
}

// deep is the cursor of a page far down the list.
func (w *world) deep(base string) string {
	after := ""
	for range 40 {
		body := w.get(base + web.Prefix + "/groups?limit=1000&sort=-lag&after=" + after)
		_, rest, ok := strings.Cut(body, `"next": "`)
		if !ok {
			break
		}
		after, _, _ = strings.Cut(rest, `"`)
	}
	return after
}

func (w *world) get(url string) string {
	w.t.Helper()
	resp, err := http.Get(url)
	must(w.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	assert.MustTrue(w.t, err == nil && resp.StatusCode == http.StatusOK, "%s: %d %v %.200s", url, resp.StatusCode, err, body)
	return string(body)
}

// measure asks again and again, and returns how many lines the answer has.
func (w *world) measure(url, name string, n int) (lines int) {
	w.t.Helper()
	var took []time.Duration
	for range n {
		began := time.Now()
		body := w.get(url)
		took = append(took, time.Since(began))
		lines = strings.Count(body, "\n")
	}
	slices.Sort(took)
	w.t.Logf("%-60s p50 %8v  p99 %8v  max %8v", name, took[n/2].Round(10*time.Microsecond), took[n*99/100].Round(10*time.Microsecond), took[n-1].Round(10*time.Microsecond))
	return lines
}

// paint measures when pages show something, and when they show what they are about.
func (w *world) paint(p *page) {
	for path, until := range map[string]string{
		"/groups": says("group-0"), "/groups?sort=-lagSeconds&q=99": says("group-0"), "/": "document.querySelector('main h1')", "/topics": says("wide"), "/topics/wide": says("of 10,000"), "/topics/wide?from=9800": says("9,999"),
	} {
		for range 2 { // The second time from the cache.
			p.open(path, until)
			ms, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`JSON.stringify({firstPaint: Math.round(performance.getEntriesByName("first-contentful-paint")[0]?.startTime), answers: performance.getEntriesByType("resource").filter(r => r.name.includes("/api/")).map(r => Math.round(r.responseEnd)), now: Math.round(performance.now())})`))
			w.t.Logf("%-32s %s %v", path, ms, err)
		}
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
