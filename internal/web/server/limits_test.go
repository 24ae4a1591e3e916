package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/assert"
)

// deadlines notes what deadlines a connection gets.
type deadlines struct {
	*httptest.ResponseRecorder
	read []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.read = append(d.read, at)
	return nil
}

// A body has its time. What comes after it has nothing to do with that, or the server would
// take the client for gone.
func TestTheTimeForABodyEndsWithIt(t *testing.T) {
	var left bool
	g := newGuard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := r.Body.Read(make([]byte, 1))
		_, rest := io.ReadAll(r.Body)
		left = err == nil && rest == nil
	}), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader("body")))
	assert.True(t, left && len(w.read) >= 2 && !w.read[0].IsZero() && w.read[len(w.read)-1].IsZero(), "the deadlines are %v", w.read)
	w = &deadlines{ResponseRecorder: httptest.NewRecorder()}
	newGuard(http.NotFoundHandler(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader("body")))
	assert.True(t, len(w.read) == 1 && !w.read[0].IsZero(), "if nobody reads it the deadlines are %v", w.read)
}

// Who opens connections and says nothing does not keep others out.
func TestTheLongestSilentConnectionGoesFirst(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	var silent []net.Conn
	for range maxConns + 5 {
		c, err := net.Dial("tcp", s.Addr().String())
		assert.Must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		silent = append(silent, c)
	}
	_ = silent[0].SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := silent[0].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the first ended with %v", err)
	}
	last := silent[len(silent)-1]
	fmt.Fprint(last, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(last), nil)
	assert.Must(t, err)
	_ = resp.Body.Close()
	assert.Equal(t, s.get("/page"), http.StatusOK, "a new one")
}

// recorder is a writer that notes deadlines.
type recorder struct {
	header    http.Header
	deadlines []time.Time
	sizes     []int
	pause     func()
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(int)     {}
func (r *recorder) Write(b []byte) (int, error) {
	r.sizes = append(r.sizes, len(b))
	r.pause()
	return len(b), nil
}

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.deadlines = append(r.deadlines, t)
	return nil
}

func TestEachWriteHasADeadlineOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := &recorder{header: http.Header{}, pause: func() { time.Sleep(time.Second) }}
		n, err := paced(r, nil).Write(make([]byte, 2*WriteChunk+1))
		if n != 2*WriteChunk+1 || err != nil {
			t.Fatal(n, err)
		}
		assert.Equal(t, fmt.Sprint(r.sizes), fmt.Sprint([]int{WriteChunk, WriteChunk, 1}), "the writes are %v", r.sizes)
		for i, d := range r.deadlines[1:] {
			if want := began.Add(time.Duration(i)*time.Second + writeTimeout); !d.Equal(want) {
				t.Errorf("deadline %d is %v, want %v", i, d, want)
			}
		}
	})
}

// What someone sends along is not waited for longer than a request.
func TestABodyHasADeadline(t *testing.T) {
	for length, want := range map[int64]bool{0: false, 5: true, -1: true} {
		r := &bodyRecorder{recorder: recorder{header: http.Header{}, pause: func() {}}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/healthz", http.NoBody)
		assert.Must(t, err)
		req.ContentLength = length
		newGuard(http.NotFoundHandler(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil).ServeHTTP(r, req)
		assert.Equal(t, r.read, want, "%d bytes: a deadline is set", length)
	}
}

type bodyRecorder struct {
	recorder
	read bool
}

func (r *bodyRecorder) SetReadDeadline(time.Time) error {
	r.read = true
	return nil
}
