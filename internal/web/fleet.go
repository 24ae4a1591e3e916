package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"muster/internal/auth"
	"muster/internal/web/fleet"
	"muster/internal/web/problem"
)

// Any broker answers for all. What only others know it asks them for, as whoever asks it,
// and each of them checks the rights again: so no one sees more by asking another broker.
// A question that came from a broker is answered from what this one has: it is never
// passed on, and no one else is asked but, of a group, the one broker that has its journal.

const (
	// maxAsking is how many brokers one request asks at a time.
	maxAsking = 32
	// maxForFleet is how many questions of other brokers are answered at a time. They have
	// places of their own: if they waited for those of people, brokers that ask each
	// other could wait for each other.
	maxForFleet = 32
	// passOnTimeout is how long another broker may take for something of its own.
	passOnTimeout = 8 * time.Second
)

// passed is how many brokers a question has come to.
func (c *call) passed() int {
	if c.note == nil {
		return 0
	}
	return c.note.Depth
}

// admitBrokers lets questions of other brokers pass, with their notes, and has the answers signed.
// Nothing that a request says of itself is believed without a signature.
func admitBrokers(f *fleet.Fleet, next http.Handler) http.Handler {
	if f == nil {
		return refuseNotes(next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := f.Admit(r)
		switch {
		case err != nil:
			problem.Write(w, &problem.Problem{Status: http.StatusUnauthorized, Code: "not_a_broker", Message: err.Error()})
		case n == nil:
			next.ServeHTTP(w, r)
		default:
			signed := f.Writer(w, n)
			next.ServeHTTP(signed, r.WithContext(fleet.With(r.Context(), n)))
			signed.Close()
		}
	})
}

// refuseNotes is for a broker that is alone.
func refuseNotes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header[fleet.NoteHeader]) > 0 {
			problem.Write(w, &problem.Problem{Status: http.StatusUnauthorized, Code: "not_a_broker", Message: "this broker is alone: it knows no others"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// others returns the brokers that a request has to ask: none if another broker asks.
func (a *api) others(c *call) []fleet.Target {
	if a.fleet == nil || c.note != nil {
		return nil
	}
	return a.fleet.Others()
}

// told is what another broker said.
type told[A any] struct {
	node   int32
	answer *A
}

// askOthers asks brokers at the same time, and returns what those said that answered in
// time, and who did not, both in the order of their node ids.
func askOthers[A any](a *api, c *call, targets []fleet.Target, q fleet.Question) (answers []told[A], silent []Silent) {
	got := make([]*A, len(targets))
	errs := make([]error, len(targets))
	places := make(chan struct{}, maxAsking)
	var asking sync.WaitGroup
	for i, t := range targets {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			got[i], errs[i] = askOne[A](a, c, t, q)
		})
	}
	asking.Wait()
	silent = []Silent{}
	for i, t := range targets {
		if errs[i] != nil {
			silent = append(silent, Silent{t.Node, errs[i].Error()})
		} else {
			answers = append(answers, told[A]{t.Node, got[i]})
		}
	}
	return answers, silent
}

// askOne asks a broker, as whoever asks here.
func askOne[A any](a *api, c *call, to fleet.Target, q fleet.Question) (*A, error) {
	q.Principal, q.Groups, q.Host, q.Depth = string(c.who), string(c.groups), c.host, c.passed()+1
	if q.Method == "" {
		q.Method = http.MethodGet
	}
	got, err := a.fleet.Ask(c.ctx(), to, &q, a.fleet.Silence())
	if err != nil {
		return nil, err
	}
	defer got.Done()
	if got.Status != http.StatusOK {
		return nil, problemFrom(got)
	}
	out := new(A)
	if err := json.Unmarshal(got.Body, out); err != nil {
		return nil, errors.New(unreadable)
	}
	return out, nil
}

// problemFrom reads why another broker did not answer.
func problemFrom(got *fleet.Answer) *problem.Problem {
	p := &problem.Problem{}
	if json.Unmarshal(got.Body, p) != nil || p.Code == "" {
		p.Code, p.Message = "unavailable", "the broker that was asked gave no reason"
	}
	p.Status = got.Status
	return p
}

// passOn has another broker answer a request about something that it alone has.
func (a *api) passOn(c *call, e *problem.Elsewhere) (contentType string, body []byte, err error) {
	to, known := a.target(e.Broker)
	if !known {
		return "", nil, e
	}
	r, method := c.request, c.request.Method
	if method == http.MethodHead {
		method = http.MethodGet // An answer is proven with its body.
	}
	q := &fleet.Question{
		Method: method, URI: r.URL.RequestURI(), Accept: r.Header.Get("Accept"), ContentType: r.Header.Get("Content-Type"), Body: c.body,
		Principal: string(c.who), Groups: string(c.groups), Host: c.host, Depth: 1,
	}
	got, err := a.fleet.Ask(c.ctx(), to, q, passOnTimeout)
	var away *fleet.UnreachableError
	switch {
	case errors.As(err, &away) && away.Sent && method != http.MethodGet:
		return "", nil, problem.Unavailable(e.What + " is with another broker, which did not answer: " + away.Message + doubtful)
	case err != nil && away == nil && method != http.MethodGet && c.ctx().Err() != nil:
		return "", nil, problem.Unavailable(e.What + " is with another broker, which took too long to answer" + doubtful)
	case errors.As(err, &away) && away.Sent:
		return "", nil, problem.Unavailable(e.What + " is with another broker, which did not answer: " + away.Message)
	case errors.As(err, &away):
		return "", nil, &problem.Elsewhere{What: e.What, Broker: e.Broker, Why: away.Message}
	case err != nil:
		return "", nil, err
	}
	defer got.Done()
	switch {
	case got.Status == http.StatusOK:
		return got.ContentType, append([]byte(nil), got.Body...), nil
	case got.Status == http.StatusMisdirectedRequest:
		return "", nil, problem.Unavailable(fmt.Sprintf("%s is with broker %d, which says: %s", e.What, e.Broker, problemFrom(got).Message))
	}
	return "", nil, problemFrom(got)
}

// doubtful ends the sentence of an act whose outcome no one knows.
const doubtful = ". It may or may not have done it: look before you try again"

// elsewhere says whether a request is to be passed on: to whom its error says, unless it
// was passed on already.
func (a *api) elsewhere(c *call, err error) *problem.Elsewhere {
	var e *problem.Elsewhere
	if a.fleet == nil || c.note != nil || !errors.As(err, &e) || e.Broker < 0 {
		return nil
	}
	return e
}

// target returns a broker that can be asked.
func (a *api) target(node int32) (fleet.Target, bool) {
	for _, t := range a.fleet.Others() {
		if t.Node == node {
			return t, true
		}
	}
	return fleet.Target{}, false
}

// passedOn says whether a broker asks, and takes its word for who asked it and whence.
func passedOn(c *call) bool {
	if c.note = fleet.From(c.request.Context()); c.note == nil {
		return false
	}
	c.who, c.groups, c.host = auth.Principal(c.note.Principal), auth.Groups(c.note.Groups), c.note.Host
	return true
}

// places returns where a request waits for its turn.
func (a *api) places(c *call) chan struct{} {
	if c.note != nil {
		return a.fleetSlots
	}
	return a.slots
}

// FleetPrefix is where brokers ask each other for what people do not.
const FleetPrefix = "/fleet/v1"

// fleetRoutes are for other brokers only, and no part of the API that stays the same: a
// broker that does not know one answers 404, and is named among those that are silent.
var fleetRoutes = []route{
	get("fleetGroups", "/groups", "A page of this broker's groups, with the keys that they are sorted by.", (*api).fleetGroups, listsGroups),
	post("fleetTopics", "/topics", "This broker's part in the numbers of some topics.", (*api).fleetTopics, listsTopics),
	get("fleetChanges", "/changes", "The groups that something happened to.", (*api).fleetChanges),
}

// onlyBrokers keeps people out.
func onlyBrokers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fleet.From(r.Context()) == nil {
			problem.Write(w, problem.NotFound("there is no such path; %s/openapi.json lists all", Prefix))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// post makes a route that takes a body, for other brokers.
func post[Q, A any](name, path, doc string, serve func(*api, *call, *Q) (*A, error), needs ...need) route {
	return route{
		method: http.MethodPost, path: path, name: name, doc: doc, needs: needs, body: reflect.TypeFor[Q](), maxBody: fleet.MaxBody,
		serve: func(a *api, c *call) (any, error) {
			q := new(Q)
			if err := parseBody(c.body, q); err != nil {
				return nil, err
			}
			return serve(a, c, q)
		},
	}
}

// withQuery joins a path and a query.
func withQuery(path, query string) string {
	if query == "" {
		return path
	}
	return path + "?" + query
}

// jsonQuery is the query of a request without the wish for CSV, which brokers do not
// have among each other.
func jsonQuery(r *http.Request) string {
	if !strings.Contains(r.URL.RawQuery, "format=") {
		return r.URL.RawQuery
	}
	q := r.URL.Query()
	q.Del("format")
	return q.Encode()
}

// oldest returns the earlier of two times of which nil is never.
func oldest(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}
