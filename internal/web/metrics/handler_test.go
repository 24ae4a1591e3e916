package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// slowly is someone who reads nothing until they are told.
type slowly struct {
	*httptest.ResponseRecorder
	begun, read chan struct{}
}

func (s *slowly) Write(b []byte) (int, error) {
	s.begun <- struct{}{}
	<-s.read
	return s.ResponseRecorder.Write(b)
}

// Those who read slowly take no place of others, and no memory without bound.
func TestSlowReadersKeepNobodyFromTheMetrics(t *testing.T) {
	const size = 1 << 20
	s := &handler{places: make(chan struct{}, scrapes), make: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Repeat("x", size)))
	})}
	ask := func(w http.ResponseWriter) {
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	}
	slow := &slowly{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	ended := make(chan struct{})
	const readers = maxUnread/size - 1
	for range readers {
		go func() {
			ask(&slowly{httptest.NewRecorder(), slow.begun, slow.read})
			ended <- struct{}{}
		}()
		<-slow.begun
	}
	w := httptest.NewRecorder()
	if ask(w); w.Code != http.StatusOK || w.Body.Len() != size {
		t.Errorf("another one is answered %d with %d bytes", w.Code, w.Body.Len())
	}
	s.unread.Add(size)
	w = httptest.NewRecorder()
	if ask(w); w.Code != http.StatusServiceUnavailable {
		t.Errorf("one too many is answered %d", w.Code)
	}
	s.unread.Add(-size)
	close(slow.read)
	for done := 0; done < readers; {
		select {
		case <-slow.begun:
		case <-ended:
			done++
		}
	}
	if s.unread.Load() != 0 || len(s.places) != 0 {
		t.Errorf("%d bytes and %d places are taken afterwards", s.unread.Load(), len(s.places))
	}
}
