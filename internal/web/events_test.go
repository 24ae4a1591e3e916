package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/assert"
	"muster/internal/watch"
	"muster/internal/web/server"
)

// wire is a client's end of a stream.
type wire struct {
	mu     sync.Mutex
	header http.Header
	code   int
	text   strings.Builder
	gone   error
}

func (w *wire) Header() http.Header  { return w.header }
func (w *wire) WriteHeader(code int) { w.code = code }
func (w *wire) Flush()               {}
func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone != nil {
		return 0, w.gone
	}
	return w.text.Write(b)
}

// took returns what came since the last time.
func (w *wire) took() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.text.String()
	w.text.Reset()
	return out
}

func streamAPI(f *fake) *api {
	return newAPI(&Options{Reads: f, Gate: f, Now: time.Now}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
}

// open begins a stream. It ends when done is closed.
func open(t *testing.T, a *api, query string) (w *wire, done chan struct{}) {
	t.Helper()
	return openFrom(t, a, "127.0.0.1:1", query)
}

// openFrom is open of someone at an address.
func openFrom(t *testing.T, a *api, address, query string) (w *wire, done chan struct{}) {
	t.Helper()
	w, done = &wire{header: http.Header{}}, make(chan struct{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, Prefix+"/events?"+query, http.NoBody)
	must(t, err)
	r.RemoteAddr = address
	go func() {
		defer close(done)
		a.events(w, r)
	}()
	synctest.Wait()
	return w, done
}

func TestAStreamTellsWhatHasChanged(t *testing.T) {
	f := newFake(t)
	synctest.Test(t, func(t *testing.T) {
		a := streamAPI(f)
		w, done := open(t, a, "watch=groups&watch=group:billing&watch=group:shipping&watch=group:a,+b")
		if w.code != http.StatusOK || w.header.Get("Content-Type") != "text/event-stream" || w.took() != "event: open\ndata: {}\n\n" {
			t.Errorf("it begins with %d %v", w.code, w.header)
		}
		time.Sleep(2 * streamTick)
		synctest.Wait()
		assert.Equal(t, w.took(), "", "though nothing has changed it")
		f.mu.Lock()
		f.touched = append(f.touched, "billing", "other", "billing")
		f.mu.Unlock()
		time.Sleep(streamTick)
		synctest.Wait()
		if got := w.took(); strings.Count(got, "event: changed") != 1 || !strings.Contains(got, `"watch":"group:billing"`) {
			t.Errorf("of a group it says %q", got)
		}
		f.mu.Lock()
		f.touched = append(f.touched, "a", "a, b", "b")
		f.mu.Unlock()
		time.Sleep(streamTick)
		synctest.Wait()
		if got := w.took(); strings.Count(got, "event: changed") != 1 || !strings.Contains(got, `"watch":"group:a, b"`) {
			t.Errorf("of a group with a comma in its name it says %q", got)
		}
		f.mu.Lock()
		f.snapshot, f.missed = &watch.Snapshot{Groups: f.snapshot.Groups}, true
		f.denies["DESCRIBE GROUP shipping"] = true
		f.mu.Unlock()
		time.Sleep(streamTick)
		synctest.Wait()
		if got := w.took(); !strings.HasPrefix(got, "event: reset\n") || strings.Count(got, "event: changed") != 3 || strings.Contains(got, "shipping") {
			t.Errorf("of a new look, after a gap, without a right it says %q", got)
		}
		time.Sleep(keepAlive)
		synctest.Wait()
		assert.Equal(t, w.took(), ": still here\n\n", "in silence it")
		time.Sleep(longestStream)
		<-done
		assert.Equal(t, a.streams.Used(), 0, "streams are left")
	})
}

func TestStreamsAreBounded(t *testing.T) {
	f := newFake(t)
	synctest.Test(t, func(t *testing.T) {
		a := streamAPI(f)
		var all []chan struct{}
		refused := func(what, address string) {
			t.Helper()
			w, done := openFrom(t, a, address, "watch=groups")
			<-done
			assert.Equal(t, w.code, http.StatusServiceUnavailable, "%s gets", what)
		}
		for i := range maxStreams / maxOwnStreams {
			address := fmt.Sprintf("10.0.0.%d", i)
			for port := range maxOwnStreams {
				w, done := openFrom(t, a, fmt.Sprintf("%s:%d", address, port), "watch=groups")
				assert.Equal(t, w.code, http.StatusOK, "stream %d of %s gets", port, address)
				all = append(all, done)
			}
			refused("one more of "+address, address+":9999")
		}
		refused("one more of somebody else", "10.0.1.0:1")
		a.drain() // It waits until all have ended.
		for _, done := range all {
			<-done
		}
	})
}

// Behind a proxy all people have one address.
func TestPeopleAtOneAddressHaveAShareEach(t *testing.T) {
	s := newStreams()
	ann, bob := &call{who: "User:ann", host: "10.0.0.1"}, &call{who: "User:bob", host: "10.0.0.1"}
	for range maxOwnStreams {
		assert.MustTrue(t, s.enter(ann), "ann does not get her share")
	}
	assert.True(t, !s.enter(ann) && s.enter(bob), "ann gets more than her share, or bob none")
	if s.leave(ann); !s.enter(ann) {
		t.Error("what ann gave back she does not get again")
	}
}

func TestAStreamThatNobodyReadsEnds(t *testing.T) {
	f := newFake(t)
	synctest.Test(t, func(t *testing.T) {
		a := streamAPI(f)
		w, done := open(t, a, "watch=groups")
		w.mu.Lock()
		w.gone = errors.New("the deadline has passed")
		w.mu.Unlock()
		<-done
		assert.Equal(t, a.streams.Used(), 0, "streams are left")
	})
}

func TestStreamsThatAreRefused(t *testing.T) {
	f := newFake(t)
	f.denies["DESCRIBE GROUP secret"] = true
	s := serve(t, f)
	for query, want := range map[string]int{
		"": http.StatusBadRequest, "?watch=": http.StatusBadRequest, "?watch=x": http.StatusBadRequest, "?watch=group:": http.StatusBadRequest,
		"?" + strings.Repeat("&watch=groups", 40): http.StatusBadRequest, "?watch=groups,topics": http.StatusBadRequest, "?watch=group:secret": http.StatusForbidden,
	} {
		s.fails(Prefix+"/events"+query, want)
	}
	f.users = map[string]string{"ann": "anns"}
	s.fails(Prefix+"/events?watch=groups", http.StatusUnauthorized)
	assert.Equal(t, s.api.streams.Used(), 0, "streams are left")
}

// Those who stream, those who are answered and brokers that ask leave connections for
// others.
func TestStreamsLeaveRoomForTheRest(t *testing.T) {
	assert.True(t, maxStreams+maxAnswering+maxForFleet <= server.MaxServed, "streams leave too little for the rest")
}
