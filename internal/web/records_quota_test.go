package web

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/assert"
	"muster/internal/web/problem"
)

func TestWhatASearchReadsIsCountedAndBoundByTheQuota(t *testing.T) {
	l := newLog("one", "two", "three")
	a := apiOver(t, l)
	run := func(query string) *following {
		t.Helper()
		s, leave, err := asksFor(t, a, query)
		must(t, err)
		defer leave()
		s.run(t.Context())
		return &following{recordsSearch: s, t: t}
	}
	if values, end := run("order=oldest").told(); len(values) != 3 || end.Why != "end" || l.taken.Load() != int64(len("onetwothree")) {
		t.Errorf("it found %v, ended with %+v, and %d bytes are counted", values, end, l.taken.Load())
	}
	l.room = func() (int, time.Duration) { return 5, 0 }
	for range 100 {
		l.put(strings.Repeat("x", 100<<10))
	}
	f := run("order=oldest&value=nothing")
	if _, end := f.told(); end.Why != atQuota || end.Next == "" || f.search.Limits.Bytes != 5 {
		t.Errorf("within a quota it ended with %+v", end)
	}
	l.room = func() (int, time.Duration) { return 0, 1500 * time.Millisecond }
	_, _, err := asksFor(t, a, "")
	p := problem.Of(err)
	if err == nil || p.Status != http.StatusTooManyRequests || p.RetryAfter != 2 || p.Code != "quota_exceeded" || !strings.Contains(p.Message, "consumer_byte_rate") {
		t.Errorf("beyond it: %+v", p)
	}
	assert.Equal(t, len(a.searches), 0, "places are taken")
}

// Who follows waits for the quota, and loses nothing.
func TestFollowersWaitForTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog("a")
		var owed atomic.Int64
		l.room = func() (int, time.Duration) { return 1, time.Duration(owed.Swap(0)) }
		f := follows(t, l, func(*api) {})
		synctest.Wait()
		if values, end := f.told(); len(values) != 1 || end != nil {
			t.Errorf("told %v, %+v", values, end)
		}
		owed.Store(int64(time.Minute))
		l.put("b")
		synctest.Wait()
		if values, end := f.told(); len(values) != 0 || end != nil {
			t.Errorf("while it owes: %v, %+v", values, end)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if values, end := f.told(); len(values) != 1 || end != nil {
			t.Errorf("then told %v, %+v", values, end)
		}
		f.cancel()
		<-f.done
	})
}
