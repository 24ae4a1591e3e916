package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"muster/internal/auth"
	"muster/internal/fair"
	"muster/internal/watch"
	"muster/internal/web/problem"
)

// EventsQuery asks to be told of changes.
type EventsQuery struct {
	Watch []string `query:"watch" commas:"no" doc:"what to be told of: overview, groups, topics, or group: and a name; given once for each, at most 32"`
}

// Changed says that something is not what it was: whoever shows it reads it again.
type Changed struct {
	Watch string    `json:"watch" doc:"what has changed, as it was asked for"`
	At    time.Time `json:"at"`
}

const (
	// maxStreams is how many streams there are at a time, and maxOwnStreams how many of one
	// person at one address. Browsers have one for each tab that is seen.
	maxStreams    = 64
	maxOwnStreams = maxStreams / 4
	// streamTick is how often streams look. Nothing is told more often.
	streamTick = time.Second
	// keepAlive is how often something is sent, so that who is gone is noticed.
	keepAlive = 15 * time.Second
	// longestStream is when a stream ends, and the client comes again, and logs in again.
	longestStream = time.Hour
	// groupWatch is before the name of a group that is watched.
	groupWatch = "group:"
)

// stream is what someone is told of.
type stream struct {
	api      *api
	call     *call
	watches  []string
	seen     *watch.Snapshot
	next     uint64   // The number of the next change of a group.
	far      farPlace // The same of other brokers.
	silent   time.Duration
	w        http.ResponseWriter
	flush    func() error
	failures error
}

// checkWatches says whether there are such things, and whether the caller may know of them.
func (a *api) checkWatches(c *call, watches []string) error {
	if len(watches) == 0 {
		return problem.BadRequest("watch names nothing")
	}
	for _, watch := range watches {
		group, named := strings.CutPrefix(watch, groupWatch)
		switch {
		case named && group != "":
			if err := a.may(c.asks(auth.Describe, auth.Group, group)); err != nil {
				return err
			}
		case watch != "overview" && watch != "groups" && watch != "topics":
			return problem.BadRequest("%q cannot be watched: there are overview, groups, topics, and %sNAME", watch, groupWatch)
		}
	}
	return nil
}

// events answers the route that streams. It takes none of the slots, since it does next
// to nothing; there is a number of its own for these.
func (a *api) events(w http.ResponseWriter, r *http.Request) {
	s, err := a.openStream(w, r)
	if err != nil {
		challenge(w, r, err)
		a.refuse(w, err)
		return
	}
	defer a.running.Done()
	defer a.streams.leave(s.call)
	defer a.distant.leave()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	s.write("event: open\ndata: {}\n\n")
	ctx, cancel := context.WithTimeout(r.Context(), longestStream)
	defer cancel()
	t := time.NewTicker(streamTick)
	defer t.Stop()
	for s.tell() == nil {
		select {
		case <-t.C:
			s.look()
		case <-ctx.Done():
			return
		case <-a.stopping:
			return
		}
	}
}

// openStream makes a stream that is counted: the caller gives both back.
func (a *api) openStream(w http.ResponseWriter, r *http.Request) (*stream, error) {
	if !a.begin() {
		return nil, errStopping
	}
	s, err := a.newStream(w, r)
	if err != nil {
		a.running.Done()
	}
	return s, err
}

func (a *api) newStream(w http.ResponseWriter, r *http.Request) (*stream, error) {
	if err := a.reads.Ready(); err != nil {
		return nil, problem.Unavailable(err.Error())
	}
	c := newCall(r)
	if err := a.admit(&events, c); err != nil {
		return nil, err
	}
	q := new(EventsQuery)
	if err := parseQuery(r.URL.RawQuery, q); err != nil {
		return nil, err
	}
	if err := a.checkWatches(c, q.Watch); err != nil {
		return nil, err
	}
	if !a.streams.enter(c) {
		return nil, problem.Busy()
	}
	s := &stream{api: a, call: c, watches: q.Watch, seen: a.reads.Snapshot(), w: w, flush: http.NewResponseController(w).Flush}
	_, s.next, _ = a.reads.Changes(0)
	s.far = a.distant.enter()
	return s, nil
}

// look tells what has changed since the last look.
func (s *stream) look() {
	touched, next, missed := s.api.reads.Changes(s.next)
	s.next = next
	far, looked, gap := s.api.distant.since(&s.far)
	if touched = append(touched, far...); missed || gap {
		s.write("event: reset\ndata: {}\n\n") // All may have changed.
	}
	if !s.api.holds(s.call) {
		s.failures = errNobody // Who comes again has to log in.
		return
	}
	now := s.api.reads.Snapshot()
	fresh := looked || now != s.seen
	s.seen = now
	of := map[string]bool{}
	for _, group := range touched {
		of[groupWatch+group] = true
	}
	for _, watch := range s.watches {
		if (fresh || of[watch]) && s.mayKnow(watch) {
			s.change(watch)
		}
	}
	if s.silent += streamTick; s.silent >= keepAlive {
		s.write(": still here\n\n")
	}
}

// mayKnow says whether the caller still has the right to know.
func (s *stream) mayKnow(watch string) bool {
	group, named := strings.CutPrefix(watch, groupWatch)
	return !named || s.api.sees(s.call, auth.Group, group)
}

func (s *stream) change(watch string) {
	b, err := json.Marshal(Changed{watch, s.api.now().UTC()})
	if err != nil {
		s.failures = err
		return
	}
	s.write("event: changed\ndata: " + string(b) + "\n\n")
}

// write sends some text. Who does not read it in time is not waited for again.
func (s *stream) write(text string) {
	if s.failures == nil {
		_, s.failures = s.w.Write([]byte(text))
		s.silent = 0
	}
}

// tell sends what was written.
func (s *stream) tell() error {
	if s.failures == nil {
		s.failures = s.flush()
	}
	return s.failures
}

// streams counts those who are told of changes, or follow records. No one has more than a
// share of the places, so that one with many tabs, or a script, does not take the live pages
// of all others. Behind a proxy all have one address, and are told apart by their logins.
type streams struct{ fair.Shares[place] }

// place is someone at an address.
type place struct {
	who  auth.Principal
	host string
}

func newStreams() streams {
	return streams{fair.Shares[place]{Most: maxStreams, Own: maxOwnStreams}}
}

// enter counts a stream, unless there are too many; leave ends it.
func (s *streams) enter(c *call) bool { return s.Take(place{c.who, c.host}, 1) }

func (s *streams) leave(c *call) { s.Give(place{c.who, c.host}, 1) }
