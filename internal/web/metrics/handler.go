package metrics

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// maxUnread is how many bytes of answers may wait for those who read them slowly.
	maxUnread = 64 << 20
	// readTime is how long someone may take to read an answer.
	readTime = 30 * time.Second
	// writeSize is how much is written at a time.
	writeSize = 64 << 10
)

// handler makes an answer as a whole before it is sent, so that those who read slowly take
// no place of those who make one. Anyone may ask.
type handler struct {
	places chan struct{}
	make   http.Handler
	unread atomic.Int64
}

// ServeHTTP implements http.Handler.
func (s *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case s.places <- struct{}{}:
	default:
		http.Error(w, "too many ask at the same time; try again", http.StatusServiceUnavailable)
		return
	}
	page := &answer{header: w.Header(), status: http.StatusOK}
	func() {
		defer func() { <-s.places }()
		s.make.ServeHTTP(page, r)
	}()
	size := int64(page.body.Len())
	defer s.unread.Add(-size)
	if s.unread.Add(size) > maxUnread {
		w.Header().Del("Content-Encoding")
		http.Error(w, "too many read slowly; try again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(page.status)
	for end := time.Now().Add(readTime); page.body.Len() > 0; {
		if _, err := w.Write(page.body.Next(writeSize)); err != nil {
			return
		}
		if time.Now().After(end) {
			panic(http.ErrAbortHandler) // Whoever reads it must not take the part for the whole.
		}
	}
}

// answer is an answer in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (p *answer) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *answer) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter.
func (p *answer) Write(b []byte) (int, error) { return p.body.Write(b) }
