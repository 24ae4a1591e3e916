package web

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/search"
	"muster/internal/web/problem"
	"muster/internal/web/server"
)

func (r *RecordBytes) binary(b []byte) *RecordBytes {
	r.Base64 = base64.StdEncoding.EncodeToString(b)
	return r
}

// lines are those of an answer that wait to be sent. Who searches never waits for who
// reads: what is found has its bound, and a slow reader must not keep others from
// searching.
type lines struct {
	api    *api
	unsent atomic.Int64 // bytes
	mu     sync.Mutex
	b      bytes.Buffer
	more   chan struct{} // Has one when there is something.
	ended  bool
}

func (l *lines) add(line *RecordsLine) {
	b, err := json.Marshal(line)
	if err != nil {
		panic("a line of records: " + err.Error()) // It is plain data.
	}
	b = append(b, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = l.ended || line.End != nil
	l.b.Write(b)
	l.wait(len(b))
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// wait counts bytes that wait to be sent, and with fewer than none those that do not any
// more.
func (l *lines) wait(bytes int) {
	l.unsent.Add(int64(bytes))
	l.api.found.Add(int64(bytes))
}

// drop forgets what is there.
func (l *lines) drop() {
	rest, _ := l.take()
	l.wait(-len(rest))
}

// take takes what is there.
func (l *lines) take() (b []byte, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b = bytes.Clone(l.b.Bytes())
	l.b = bytes.Buffer{}
	return b, l.ended
}

// searchRecords answers the route that searches.
func (a *api) searchRecords(w http.ResponseWriter, r *http.Request) {
	if !a.begin() {
		a.refuse(w, errStopping)
		return
	}
	defer a.running.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s, leave, err := a.openSearch(ctx, r)
	if err != nil {
		challenge(w, r, err)
		a.refuse(w, err)
		return
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		defer leave()
		defer s.recovered()
		s.run(ctx)
	}()
	defer func() { cancel(); <-finished; s.out.drop() }()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	s.send(ctx, w)
}

// openSearch finds out whether someone may search, and waits for a place to do so.
func (a *api) openSearch(ctx context.Context, r *http.Request) (s *recordsSearch, leave func(), err error) {
	if err := a.reads.Ready(); err != nil {
		return nil, nil, problem.Unavailable(err.Error())
	}
	c := newCall(r)
	if err := a.admit(&recordsRoute, c); err != nil {
		return nil, nil, err
	}
	q := new(RecordsQuery)
	if err := parseQuery(r.URL.RawQuery, q); err != nil {
		return nil, nil, err
	}
	if err := a.allowed(c, recordsRoute.needs); err != nil {
		return nil, nil, err
	}
	place, err := a.searchPlace(ctx, c, q.Follow)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if s == nil {
			place() // Also if something broke.
		}
	}()
	if a.found.Load() > maxUnread { // Not before: there may be many that wait for a place.
		return nil, nil, problem.Busy()
	}
	if s, err = a.newSearch(ctx, c, q); err != nil {
		return nil, nil, err
	}
	s.out = &lines{api: a, more: make(chan struct{}, 1)}
	return s, place, nil
}

// searchPlace takes a place among those that follow, or waits for one among those that
// search. It returns how to give it back.
func (a *api) searchPlace(ctx context.Context, c *call, follow bool) (leave func(), err error) {
	if !follow {
		return func() { <-a.searches }, a.enterSearch(ctx)
	}
	if !a.streams.enter(c) {
		return nil, problem.Busy()
	}
	return func() { a.streams.leave(c) }, nil
}

// enterSearch waits for a place among those that search.
func (a *api) enterSearch(ctx context.Context) error {
	t := time.NewTimer(maxWait)
	defer t.Stop()
	select {
	case a.searches <- struct{}{}:
		return nil
	case <-t.C:
	case <-ctx.Done():
	case <-a.stopping:
	}
	return problem.Busy()
}

// run searches until there is something to end for.
func (s *recordsSearch) run(ctx context.Context) {
	s.search.Found = func(f *search.Found) { s.out.add(&RecordsLine{Record: recordOf(f)}) }
	s.search.Progress = func(p search.Progress) { s.out.add(&RecordsLine{Progress: progressOf(p)}) }
	var out *search.Outcome
	var err error
	if s.query.Follow {
		out, err = s.follow(ctx)
	} else {
		part, cancel := context.WithTimeout(ctx, longestPart)
		defer cancel()
		out, err = s.search.Run(part, s.from)
	}
	if err != nil {
		s.fail(err)
		return
	}
	end := &SearchEnd{Elsewhere: some(s.elsewhere), Failures: []Unread{}}
	end.SearchProgress, end.Why, end.Cut, end.Unreadable = *progressOf(out.Progress), s.because(out.Why), out.Cut, out.Unreadable
	end.JQFailed, end.JQFailure = int64(out.Failed), out.Failure
	for _, f := range out.Failures {
		end.Failures = append(end.Failures, Unread{f.Partition, f.Err.Error()})
	}
	if out.Next != nil {
		end.Next = out.Next.String()
	}
	s.out.add(&RecordsLine{End: end})
}

// fail tells why the search could not go on.
func (s *recordsSearch) fail(err error) {
	s.out.add(&RecordsLine{End: &SearchEnd{Elsewhere: some(s.elsewhere), Failures: []Unread{}, Why: search.AtFailure, Problem: problem.Of(err)}})
}

// recovered has a search that broke end alone, and not with the broker.
func (s *recordsSearch) recovered() {
	if p := recover(); p != nil {
		s.api.logger.Error("a search of records broke", "topic", s.topic, "panic", p, "stack", string(debug.Stack()))
		s.fail(errors.New("the search broke; the log of the broker says where"))
	}
}

func progressOf(p search.Progress) *SearchProgress {
	out := &SearchProgress{Searched: p.Searched, Found: p.Found, About: p.About, Bytes: p.Bytes}
	if p.Total >= 0 {
		out.Total = &p.Total
	}
	return out
}

// send sends lines as they come. Who does not read them in time is not waited for.
func (s *recordsSearch) send(ctx context.Context, w http.ResponseWriter) {
	flush := http.NewResponseController(w).Flush
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for {
		b, ended := s.out.take()
		err := s.write(ctx, w, b)
		s.out.wait(-len(b))
		if err != nil || flush() != nil || ended {
			return
		}
		select {
		case <-s.out.more:
		case <-alive.C:
			if _, err := w.Write([]byte("{}\n")); err != nil {
				return
			}
		case <-ctx.Done():
			return
		case <-s.api.stopping:
			return
		}
	}
}

// write writes piece by piece: who reads slowly, but reads, must not keep the broker from
// stopping.
func (s *recordsSearch) write(ctx context.Context, w http.ResponseWriter, b []byte) error {
	for piece := range slices.Chunk(b, server.WriteChunk) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.api.stopping:
			return errStopping
		default:
		}
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}
