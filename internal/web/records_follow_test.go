package web

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/assert"
	"muster/internal/search"
	"muster/internal/web/problem"
)

// apiOver answers for the records of a log.
func apiOver(t *testing.T, l *oneLog) *api {
	f := newFake(t)
	return newAPI(&Options{Reads: f, Gate: f, Records: l, Logger: slog.New(slog.DiscardHandler), Now: time.Now}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
}

// asksFor asks for the records of a topic.
func asksFor(t *testing.T, a *api, query string) (s *recordsSearch, leave func(), err error) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+query, http.NoBody)
	r.Host = "localhost"
	r.SetPathValue("topic", "orders")
	return a.openSearch(t.Context(), r)
}

// following is someone who follows a log.
type following struct {
	*recordsSearch
	t      *testing.T
	cancel func()
	done   chan struct{}
}

func follows(t *testing.T, l *oneLog, prepare func(*api)) *following {
	t.Helper()
	s, _, err := asksFor(t, apiOver(t, l), "follow=true&from=beginning")
	must(t, err)
	prepare(s.api)
	ctx, cancel := context.WithCancel(t.Context())
	f := &following{s, t, cancel, make(chan struct{})}
	go func() {
		defer close(f.done)
		s.run(ctx)
	}()
	return f
}

// told returns what has been told since, the values of records and how it ended.
func (f *following) told() (values []string, end *SearchEnd) {
	f.t.Helper()
	b, _ := f.out.take()
	for d := json.NewDecoder(strings.NewReader(string(b))); ; {
		var l RecordsLine
		if err := d.Decode(&l); err == io.EOF {
			return values, end
		} else if err != nil {
			f.t.Fatal(err)
		}
		if l.Record != nil {
			values = append(values, l.Record.Value.Text)
		}
		if l.End != nil {
			end = l.End
		}
	}
}

// goesOn says whether following ended for a reason, and goes on at an offset.
func (f *following) goesOn(end *SearchEnd, why string, offset int64) {
	f.t.Helper()
	assert.MustTrue(f.t, end != nil && end.Why == why && end.Problem == nil, "it ended with %+v", end)
	next, err := search.ParseCursor(end.Next)
	assert.True(f.t, err == nil && len(next.Spans) == 1 && next.Spans[0].Low == offset && next.Found == offset, "it goes on at %+v, %v", next, err)
}

func takeAllPlaces(a *api) {
	for range maxSearches {
		a.searches <- struct{}{}
	}
}

// However long others search, who follows waits for a place, and loses none.
func TestFollowersWaitForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follows(t, newLog("a"), takeAllPlaces)
		time.Sleep(10 * maxWait)
		synctest.Wait()
		if values, end := f.told(); len(values) > 0 || end != nil {
			t.Errorf("told %v, %+v", values, end)
		}
		<-f.api.searches
		synctest.Wait()
		if values, end := f.told(); len(values) != 1 || end != nil {
			t.Errorf("then told %v, %+v", values, end)
		}
		f.cancel()
		<-f.done
	})
}

func TestFollowersWhoseTimeIsOverGoOnWhereTheyWere(t *testing.T) {
	t.Run("waiting for a place", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := follows(t, newLog("a"), takeAllPlaces)
			<-f.done
			_, end := f.told()
			f.goesOn(end, search.AtTimeout, 0)
		})
	})
	t.Run("waiting for records", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := follows(t, newLog("a"), func(*api) {})
			<-f.done
			_, end := f.told()
			f.goesOn(end, search.AtTimeout, 1)
		})
	})
	// What was told of is not told again.
	t.Run("in a part", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLog("a")
			f := follows(t, l, func(*api) {})
			time.Sleep(longestFollow - longestPart/3)
			synctest.Wait()
			l.read = func() { time.Sleep(longestPart / 2) }
			l.put("b")
			<-f.done
			values, end := f.told()
			assert.Equal(t, len(values), 2, "told %v", values)
			f.goesOn(end, search.AtTimeout, 2)
		})
	})
}

// What all have not read together bounds those who follow, too, and they can go on later.
func TestFollowersEndWhenTooMuchIsUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog("a")
		f := follows(t, l, func(*api) {})
		synctest.Wait()
		f.api.found.Add(maxUnread)
		l.put("b")
		<-f.done
		values, end := f.told()
		assert.True(t, len(values) == 1 && len(f.api.searches) == 0, "told %v; %d still search", values, len(f.api.searches))
		f.goesOn(end, search.AtPage, 1)
	})
}

// Who waited for a place is not let in by what was true before.
func TestSearchesAreRefusedWhenTooMuchIsUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := apiOver(t, newLog("a"))
		takeAllPlaces(a)
		refused := make(chan error)
		go func() {
			_, _, err := asksFor(t, a, "")
			refused <- err
		}()
		synctest.Wait()
		a.found.Add(maxUnread + 1)
		<-a.searches
		if err := <-refused; err == nil || problem.Of(err).Code != "busy" || len(a.searches) != maxSearches-1 {
			t.Errorf("%v; %d search", err, len(a.searches))
		}
		if _, _, err := asksFor(t, a, "follow=true"); err == nil || problem.Of(err).Code != "busy" || a.streams.Used() != 0 {
			t.Errorf("who follows: %v; %d follow", err, a.streams.Used())
		}
	})
}

// A search that breaks gives its place back, and the broker goes on.
func TestASearchThatBreaksBreaksNothingElse(t *testing.T) {
	l := newLog("a")
	l.read = func() { panic("broken") }
	s := serve(t, newFake(t), func(o *Options) { o.Records = l })
	for _, query := range []string{"", "?follow=true&from=beginning"} {
		resp, body := s.do(http.MethodGet, Prefix+"/topics/orders/records"+query)
		var line RecordsLine
		if err := json.Unmarshal([]byte(body), &line); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s: %v", resp.StatusCode, body, err)
		}
		if end := line.End; end == nil || end.Why != search.AtFailure || end.Problem == nil || end.Problem.Code != "internal" {
			t.Errorf("%q ended with %s", query, body)
		}
		if searching, following := len(s.api.searches), int(s.api.streams.Used()); searching+following != 0 {
			t.Errorf("%d still search, %d follow", searching, following)
		}
	}
	l.opened = func() { panic("broken") }
	for _, query := range []string{"", "follow=true"} {
		func() {
			defer func() { _ = recover() }()
			_, _, err := asksFor(t, s.api, query)
			t.Errorf("%q: it went on with %v", query, err)
		}()
		if searching, following := len(s.api.searches), int(s.api.streams.Used()); searching+following != 0 {
			t.Errorf("%d still search, %d follow, though nobody began", searching, following)
		}
	}
}
