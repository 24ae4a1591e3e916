package web

import (
	"net/http"
	"testing"

	"muster/internal/assert"
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
		assert.Equal(t, <-done, http.StatusOK, "one that was in ended")
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

// What was done is said, however many answers no one reads: whoever is told to try again
// would do it twice.
func TestWhatWasDoneIsSaid(t *testing.T) {
	s := serve(t, newFake(t), acting(&fakeActs{}))
	s.api.unread.Add(maxUnread)
	if resp, body := s.do(http.MethodPost, Prefix+"/topics/orders/records", bringing(problem.JSON, `{"value":"x"}`)); resp.StatusCode != http.StatusOK {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	s.api.unread.Add(-maxUnread)
}

// A thousand tabs of someone take no more than their share, and no one else notices.
func TestStreamsBeyondTheirNumberAreRefusedAndOthersAnswered(t *testing.T) {
	s := serve(t, newFake(t))
	codes := map[int]int{}
	for range 3 * maxStreams {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String()+Prefix+"/events?watch=groups", http.NoBody)
		must(t, err)
		resp, err := s.client.Do(req)
		must(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		codes[resp.StatusCode]++
	}
	assert.True(t, codes[http.StatusOK] == maxOwnStreams && codes[http.StatusServiceUnavailable] == 3*maxStreams-maxOwnStreams, "the answers are %v", codes)
	if resp, _ := s.do(http.MethodGet, Prefix+"/groups"); resp.StatusCode != http.StatusOK {
		t.Errorf("meanwhile: %d", resp.StatusCode)
	}
	s.Drain()
}
