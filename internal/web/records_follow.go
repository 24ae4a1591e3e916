package web

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"muster/internal/auth"
	"muster/internal/search"
	"muster/internal/web/problem"
	"muster/internal/web/records"
	"muster/internal/words"
)

// errStopping is that the broker stops.
var errStopping = problem.Unavailable("the broker stops")

// follow searches what is there, and then what comes. When its time is over, a part that
// has begun goes on to its own end: else what it told of would be told again.
func (s *recordsSearch) follow(ctx context.Context) (*search.Outcome, error) {
	whole, cancel := context.WithTimeout(ctx, longestFollow)
	defer cancel()
	out, left := s.soFar(), s.search.Limits.Records
	for {
		if err := s.still(); err != nil {
			return nil, err
		}
		ready, done := s.api.records.Await(whole, s.topic, s.partitions, s.committed)
		part, err := s.followPart(ctx, whole, left)
		if err == nil {
			out = part
			left -= int(out.Found - s.from.Found)
			s.from = &search.Cursor{Question: s.from.Question, Total: -1, Searched: out.Searched, Found: out.Found, Spans: s.from.Spans}
			s.resume(out)
			out.Why = s.because(out.Why)
			if left <= 0 || out.Why != search.AtEnd && out.Why != atQuota {
				done()
				out.Next = s.from
				return out, nil
			}
			s.out.add(&RecordsLine{Progress: progressOf(out.Progress)})
			if s.out.unsent.Load() > searchPage {
				done()
				out.Next, out.Why = s.from, search.AtPage // They read more slowly than records come.
				return out, nil
			}
			if out.Why == search.AtEnd {
				err = s.await(whole, ready, nil)
			}
		}
		done()
		switch {
		case errors.Is(err, context.DeadlineExceeded) && whole.Err() != nil:
			out.Next, out.Why = s.from, search.AtTimeout
			return out, nil
		case err != nil:
			return nil, err
		}
	}
}

// soFar is the outcome before the next part.
func (s *recordsSearch) soFar() *search.Outcome {
	return &search.Outcome{Progress: search.Progress{Searched: s.from.Searched, Found: s.from.Found, Total: -1}, Next: s.from}
}

// await waits for records to come, or for a place to search, and looks whether the one who
// follows may still see them.
func (s *recordsSearch) await(ctx context.Context, ready <-chan struct{}, place chan<- struct{}) error {
	again := time.NewTicker(followLooks)
	defer again.Stop()
	for {
		select {
		case <-ready:
			return nil
		case place <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-s.api.stopping:
			return errStopping
		case <-again.C:
			if err := s.still(); err != nil {
				return err
			}
		}
	}
}

// still returns the problem of someone who was allowed to see records and is not any more.
func (s *recordsSearch) still() error {
	c := s.call
	if !s.api.holds(c) {
		return errNobody
	}
	if err := s.api.maySeeRecords(c); err != nil {
		return err
	}
	for _, n := range recordsRoute.needs {
		if !s.api.gate.Sees(c.asks(n.operation, n.kind, c.param(n.param))) {
			return s.api.allowed(c, recordsRoute.needs)
		}
	}
	return nil
}

// resume has the next part go on where this one ended, in all partitions.
func (s *recordsSearch) resume(out *search.Outcome) {
	left := map[int32]search.Span{}
	if out.Next != nil {
		for _, x := range out.Next.Spans {
			left[x.Partition] = x
		}
	}
	spans := s.from.Spans
	s.from.Spans = nil
	for _, x := range spans {
		if rest, ok := left[x.Partition]; ok {
			x.Low = rest.Low
		} else {
			x.Low = x.High
		}
		s.from.Spans = append(s.from.Spans, x)
	}
}

// followPart waits for a place, until the whole is over, and searches up to where partitions
// end now.
func (s *recordsSearch) followPart(ctx, whole context.Context, left int) (*search.Outcome, error) {
	if err := s.awaitQuota(whole); err != nil {
		return nil, err
	}
	if err := s.await(whole, nil, s.api.searches); err != nil {
		return nil, err
	}
	defer func() { <-s.api.searches }()
	if s.api.found.Load() > maxUnread {
		out := s.soFar()
		out.Why = search.AtPage // All together read more slowly than records come.
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, longestPart)
	defer cancel()
	for i := range s.from.Spans {
		x := &s.from.Spans[i]
		log := s.search.Logs[x.Partition]
		if log == nil {
			continue
		}
		_, end, err := log.Bounds(ctx)
		if err != nil {
			return nil, problem.Unavailable(err.Error())
		}
		x.High = max(x.High, end)
	}
	s.search.Limits.Records = left
	return s.search.Run(ctx, s.from)
}

// atQuota is that a part of a search ended because its reader's quota of bytes is used up.
const atQuota = "quota"

// meteredLog counts what is read of a log.
type meteredLog struct {
	search.Log
	quota records.Quota
}

// Read implements search.Log.
func (l *meteredLog) Read(ctx context.Context, from int64, most int, f func(*search.Record) bool) (search.Chunk, error) {
	c, err := l.Log.Read(ctx, from, most, f)
	l.quota.Take(c.Bytes)
	return c, err
}

func metered(logs map[int32]search.Log, q records.Quota) map[int32]search.Log {
	out := make(map[int32]search.Log, len(logs))
	for i, l := range logs {
		out[i] = &meteredLog{l, q}
	}
	return out
}

// withinQuota bounds the next part of the search by what its reader may read now, or
// returns how long they have to wait.
func (s *recordsSearch) withinQuota() (wait time.Duration) {
	room, wait := s.quota.Room(searchBytes)
	s.search.Limits.Bytes = min(searchBytes, max(int64(room), 1)) // At least a batch.
	return wait
}

// because says why a part ended: whether all that a part may read was read, or all that its
// reader may.
func (s *recordsSearch) because(why string) string {
	if why == search.AtBytes && s.search.Limits.Bytes < searchBytes {
		return atQuota
	}
	return why
}

// overQuota is the problem of someone who has read more than they may.
func overQuota(who auth.Principal, wait time.Duration) *problem.Problem {
	wait = max(wait, time.Second)
	return &problem.Problem{
		Status: http.StatusTooManyRequests, Code: "quota_exceeded", RetryAfter: int(math.Ceil(wait.Seconds())),
		Message: fmt.Sprintf("%s has used up the quota consumer_byte_rate; try again in %s", who, words.Duration(wait)),
	}
}

// awaitQuota waits until who follows may read on.
func (s *recordsSearch) awaitQuota(ctx context.Context) error {
	for {
		wait := s.withinQuota()
		if wait <= 0 {
			return nil
		}
		over := make(chan struct{})
		t := time.AfterFunc(wait, func() { close(over) })
		err := s.await(ctx, over, nil)
		t.Stop()
		if err != nil {
			return err
		}
	}
}
