package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/auth"
	"muster/internal/search"
	"muster/internal/web/fleet"
	"muster/internal/web/server"
)

// What someone has not read is counted while it waits, in sum and for each, and not after.
func TestLinesThatNobodyReadAreGivenBack(t *testing.T) {
	a := &api{}
	l := &lines{api: a, more: make(chan struct{}, 1)}
	l.add(&RecordsLine{Record: &TopicRecord{}})
	l.add(&RecordsLine{End: &SearchEnd{}})
	if got := a.found.Load(); got == 0 || got != l.unsent.Load() || a.unread.Load() != 0 {
		t.Errorf("%d bytes wait, %d of this one, and %d of other answers", got, l.unsent.Load(), a.unread.Load())
	}
	l.drop()
	if _, ended := l.take(); a.found.Load() != 0 || l.unsent.Load() != 0 || !ended {
		t.Errorf("afterwards %d and %d wait; ended: %t", a.found.Load(), l.unsent.Load(), ended)
	}
}

// Times after the year 9999 cannot be written, and the record must not be lost for that.
func TestRecordsOfFarTimesAreTold(t *testing.T) {
	l := &lines{api: &api{}, more: make(chan struct{}, 1)}
	for _, at := range []int64{-1, 0, lastTime, lastTime + 1, 1763000000000000} {
		r := recordOf(&search.Found{Record: search.Record{Timestamp: at}})
		if told := at >= 0 && at <= lastTime; (r.Timestamp != nil) != told || told && !r.Timestamp.Equal(time.UnixMilli(at)) {
			t.Errorf("%d is told as %v", at, r.Timestamp)
		}
		l.add(&RecordsLine{Record: r})
	}
}

// A broker that wants a login wants it also of people that another one lets in without.
func TestWhoIsPassedOnWithoutNameLogsInWhereALoginIsWanted(t *testing.T) {
	f := newFake(t)
	a := &api{reads: f, gate: f}
	identify := func(principal auth.Principal) error {
		r := httptest.NewRequestWithContext(fleet.With(t.Context(), &fleet.Note{Principal: string(principal)}), http.MethodGet, "/", http.NoBody)
		return a.identify(newCall(r))
	}
	for _, users := range []map[string]string{nil, {"ann": "secret"}} {
		f.users = users
		for _, who := range []auth.Principal{"", auth.Anonymous, "User:ann"} {
			if refused := users != nil && who == auth.Anonymous; (identify(who) != nil) != refused {
				t.Errorf("%q, users %v: %v", who, users, identify(who))
			}
		}
	}
}

// leavingWriter is someone who reads, and for whom something happens at the first piece.
type leavingWriter struct {
	*httptest.ResponseRecorder
	first sync.Once
	then  func()
}

func (w *leavingWriter) Write(b []byte) (int, error) {
	w.first.Do(w.then)
	return w.ResponseRecorder.Write(b)
}

// Who reads slowly, but reads, keeps the broker from nothing for longer than one piece.
func TestLinesAreSentPieceByPiece(t *testing.T) {
	for _, ends := range []string{"nothing", "the broker stops", "who asked has gone"} {
		a := &api{stopping: make(chan struct{})}
		s := &recordsSearch{api: a, out: &lines{api: a, more: make(chan struct{}, 1)}}
		s.out.add(&RecordsLine{Record: &TopicRecord{Result: strings.Repeat("x", 3*server.WriteChunk)}})
		s.out.add(&RecordsLine{End: &SearchEnd{}})
		all := int(s.out.unsent.Load())
		ctx, cancel := context.WithCancel(t.Context())
		w := &leavingWriter{ResponseRecorder: httptest.NewRecorder(), then: func() {}}
		want := server.WriteChunk
		switch ends {
		case "the broker stops":
			w.then = func() { close(a.stopping) }
		case "who asked has gone":
			w.then = cancel
		default:
			want = all
		}
		s.send(ctx, w)
		if got := w.Body.Len(); got != want || a.found.Load() != 0 {
			t.Errorf("%s: %d of %d bytes were sent, %d still wait", ends, got, all, a.found.Load())
		}
		cancel()
	}
}

// An answer that does not end keeps the broker from stopping for a while only.
func TestDrainWaitsForAWhileOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := apiOver(t, nil)
		a.begin()
		began := time.Now()
		if a.drain(); time.Since(began) != drainTimeout {
			t.Errorf("it waited for %v", time.Since(began))
		}
		a.running.Done()
	})
}
