package web

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

	"muster/internal/web/problem"
)

func TestRequestsBeyondTheSlotsAreToldToTryAgain(t *testing.T) {
	f := newFake(t)
	entered, leave := make(chan struct{}, maxAnswering), make(chan struct{})
	f.holds = func() { entered <- struct{}{}; <-leave }
	s := serve(t, f)
	done := make(chan int, maxAnswering)
	for range maxAnswering {
		go func() {
			resp, err := http.Get("http://" + s.Addr().String() + Prefix + "/journal")
			if err != nil {
				done <- 0
				return
			}
			_ = resp.Body.Close()
			done <- resp.StatusCode
		}()
	}
	for range maxAnswering {
		<-entered
	}
	s.fails(Prefix+"/groups", http.StatusServiceUnavailable)
	if resp, _ := s.do(http.MethodGet, "/healthz"); resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz meanwhile: %d", resp.StatusCode)
	}
	close(leave)
	for range maxAnswering {
		if code := <-done; code != http.StatusOK {
			t.Errorf("one that was in ended with %d", code)
		}
	}
	if resp, _ := s.do(http.MethodGet, Prefix+"/groups"); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	s := serve(t, newFake(t))
	s.api.unread.Add(maxUnread)
	s.fails(Prefix+"/groups", http.StatusServiceUnavailable)
	s.api.unread.Add(-maxUnread)
	if resp, _ := s.do(http.MethodGet, Prefix+"/groups"); resp.StatusCode != http.StatusOK || s.api.unread.Load() != 0 {
		t.Errorf("afterwards: %d, %d bytes", resp.StatusCode, s.api.unread.Load())
	}
}

// What was done is said, however many answers nobody reads: whoever is told to try again
// would do it twice.
func TestWhatWasDoneIsSaid(t *testing.T) {
	s := serve(t, newFake(t), acting(&fakeActs{}))
	s.api.unread.Add(maxUnread)
	if resp, body := s.do(http.MethodPost, Prefix+"/topics/orders/records", bringing(problem.JSON, `{"value":"x"}`)); resp.StatusCode != http.StatusOK {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	s.api.unread.Add(-maxUnread)
}

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
	if !left || len(w.read) < 2 || w.read[0].IsZero() || !w.read[len(w.read)-1].IsZero() {
		t.Errorf("the deadlines are %v", w.read)
	}
	w = &deadlines{ResponseRecorder: httptest.NewRecorder()}
	newGuard(http.NotFoundHandler(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader("body")))
	if len(w.read) != 1 || w.read[0].IsZero() {
		t.Errorf("if nobody reads it the deadlines are %v", w.read)
	}
}

// Who opens connections and says nothing does not keep others out.
func TestTheLongestSilentConnectionGoesFirst(t *testing.T) {
	s := serve(t, newFake(t))
	var silent []net.Conn
	for range maxConns + 5 {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp, _ := s.do(http.MethodGet, Prefix+"/groups"); resp.StatusCode != http.StatusOK {
		t.Errorf("a new one: %d", resp.StatusCode)
	}
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
		n, err := paced(r, nil).Write(make([]byte, 2*writeChunk+1))
		if n != 2*writeChunk+1 || err != nil {
			t.Fatal(n, err)
		}
		if fmt.Sprint(r.sizes) != fmt.Sprint([]int{writeChunk, writeChunk, 1}) {
			t.Errorf("the writes are %v", r.sizes)
		}
		for i, d := range r.deadlines[1:] {
			if want := began.Add(time.Duration(i)*time.Second + writeTimeout); !d.Equal(want) {
				t.Errorf("deadline %d is %v, want %v", i, d, want)
			}
		}
	})
}

// A thousand tabs of somebody take no more than their share, and nobody else notices.
func TestStreamsBeyondTheirNumberAreRefusedAndOthersAnswered(t *testing.T) {
	s := serve(t, newFake(t))
	codes := map[int]int{}
	for range 3 * maxStreams {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String()+Prefix+"/events?watch=groups", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		codes[resp.StatusCode]++
	}
	if codes[http.StatusOK] != maxOwnStreams || codes[http.StatusServiceUnavailable] != 3*maxStreams-maxOwnStreams {
		t.Errorf("the answers are %v", codes)
	}
	if resp, _ := s.do(http.MethodGet, Prefix+"/groups"); resp.StatusCode != http.StatusOK {
		t.Errorf("meanwhile: %d", resp.StatusCode)
	}
	s.Drain()
}

// What somebody sends along is not waited for longer than a request.
func TestABodyHasADeadline(t *testing.T) {
	for length, want := range map[int64]bool{0: false, 5: true, -1: true} {
		r := &bodyRecorder{recorder: recorder{header: http.Header{}, pause: func() {}}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/healthz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		newGuard(http.NotFoundHandler(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil).ServeHTTP(r, req)
		if r.read != want {
			t.Errorf("%d bytes: a deadline is set: %t", length, r.read)
		}
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
