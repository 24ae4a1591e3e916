package web

import (
	"context"
	"crypto/cipher"
	_ "embed"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/auth"
	"muster/internal/fair"
	"muster/internal/metadata"
	"muster/internal/watch"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
	"muster/internal/web/act"
	"muster/internal/web/facts"
	"muster/internal/web/fleet"
	"muster/internal/web/login"
	"muster/internal/web/problem"
	"muster/internal/web/server"
)

const (
	// maxAnswering is how many requests are answered at a time, and maxWait how long
	// others wait for their turn.
	maxAnswering = 16
	maxWait      = 2 * time.Second
	// drainTimeout is how long a broker that stops waits for answers that are being made.
	drainTimeout = 10 * time.Second
	// maxUnread is how many bytes of answers may wait for those who read them slowly.
	maxUnread = 64 << 20
)

// openAPI describes the API. It is made of the table of routes.
//
//go:embed openapi.json
var openAPI []byte

// api answers /api/v1.
type api struct {
	reads  Reads
	gate   Gate
	health func() Health
	now    func() time.Time
	logger *slog.Logger
	far    bool // People of other machines can ask, too.
	full   bool // What they may do is the same, though no one knows them.
	acts   *act.Acts

	fleet   *fleet.Fleet // nil if there are no other brokers
	distant *distant     // what happens to groups of other brokers

	sessions *login.Sessions
	seal     cipher.AEAD // of what people keep while they log in elsewhere
	port     string

	records  Records
	searches chan struct{}

	slots chan struct{}
	// fleetSlots is for questions of other brokers.
	fleetSlots chan struct{}
	unread     atomic.Int64
	found      atomic.Int64        // Bytes of records that wait for those who read them slowly.
	bodies     fair.Shares[string] // bytes, by neighbourhood
	streams    streams
	resets     sync.Map // The groups whose offsets are being reset.

	mu       sync.Mutex
	closed   bool
	stopping chan struct{}
	running  sync.WaitGroup
}

func newAPI(opts *Options, addr net.Addr) *api {
	a := &api{
		far: !server.IsLoopback(addr), full: opts.AnonymousFull, reads: opts.Reads, gate: opts.Gate, health: opts.Health, now: opts.Now, acts: opts.Actions, logger: opts.Logger,
		sessions: login.NewSessions(opts.Now), seal: newSeal(), port: portOf(addr),
		records: opts.Records, searches: make(chan struct{}, maxSearches),
		fleet: opts.Fleet, slots: make(chan struct{}, maxAnswering), fleetSlots: make(chan struct{}, maxForFleet), stopping: make(chan struct{}),
		streams: newStreams(), bodies: fair.Shares[string]{Most: maxBodies, Own: maxOwnBodies},
	}
	a.distant = newDistant(a)
	return a
}

// mount puts all routes into a mux.
func (a *api) mount(mux *http.ServeMux) {
	for _, table := range [][]route{routes, acts} {
		for i := range table {
			mux.Handle(table[i].method+" "+Prefix+table[i].path, a.handler(&table[i]))
		}
	}
	for i := range fleetRoutes {
		mux.Handle(fleetRoutes[i].method+" "+FleetPrefix+fleetRoutes[i].path, onlyBrokers(a.handler(&fleetRoutes[i])))
	}
	mux.HandleFunc(events.method+" "+Prefix+events.path, a.events)
	mux.HandleFunc(recordsRoute.method+" "+Prefix+recordsRoute.path, a.searchRecords)
	mux.HandleFunc("GET "+Prefix+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) { problem.Send(w, http.StatusOK, problem.JSON, openAPI) })
	mux.HandleFunc(logIn.method+" "+Prefix+logIn.path, a.cookies(a.logIn))
	mux.HandleFunc("GET "+oidcPath, a.withIssuer(a.leave))
	mux.HandleFunc("GET "+oidcPath+"/back", a.withIssuer(a.comeBack))
	mux.HandleFunc(logOut.method+" "+Prefix+logOut.path, a.cookies(a.logOut))
	mux.HandleFunc("/api/", noRoute)
}

// handler answers a route.
func (a *api) handler(rt *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), server.AnswerTimeout)
		defer cancel()
		contentType, body, err := a.answer(rt, r.WithContext(ctx))
		if err != nil {
			challenge(w, r, err)
			a.refuse(w, err)
			return
		}
		size := int64(len(body))
		defer a.unread.Add(-size)
		if a.unread.Add(size) > maxUnread && rt.body == nil { // What was done is said: no one must try again.
			a.refuse(w, problem.Busy())
			return
		}
		problem.Send(w, http.StatusOK, contentType, body)
	})
}

// refuse says why there is no answer, and what to do about it.
func (a *api) refuse(w http.ResponseWriter, err error) {
	p := problem.Of(err)
	switch p.Status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", strconv.Itoa(max(p.RetryAfter, 1)))
	}
	problem.Write(w, p)
}

// answer makes an answer. The time that it takes to be read is not counted: that is the
// client's.
func (a *api) answer(rt *route, r *http.Request) (contentType string, body []byte, err error) {
	if !a.begin() {
		return "", nil, errStopping
	}
	defer a.running.Done()
	if err := a.reads.Ready(); err != nil {
		return "", nil, problem.Unavailable(err.Error())
	}
	c := newCall(r)
	if err := a.admit(rt, c); err != nil {
		return "", nil, err
	}
	asCSV, err := wantsCSV(r)
	if err == nil && asCSV && rt.body != nil {
		err = problem.BadRequest("only lists can be had as CSV") // It is too late once something was done.
	}
	if err != nil {
		return "", nil, err
	}
	var release func()
	c.body, release, err = a.readBody(rt, r) // Before the slot, which no one may hold by sending slowly.
	defer release()
	if err != nil {
		return "", nil, err
	}
	places := a.places(c)
	if err := enter(r.Context(), places); err != nil {
		return "", nil, err
	}
	defer func() { <-places }()
	out, err := rt.serve(a, c)
	if e := a.elsewhere(c, err); e != nil {
		return a.passOn(c, e)
	}
	if err != nil {
		return "", nil, err
	}
	if asCSV {
		body, err := encodeCSV(out)
		return csvType, body, err
	}
	body, err = problem.Encode(out)
	return problem.JSON, body, err
}

// begin counts a request, unless the broker stops.
func (a *api) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.running.Add(1)
	}
	return !a.closed
}

func (a *api) drain() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	close(a.stopping) // Streams end.
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		a.running.Wait()
	}()
	select {
	case <-idle:
	case <-time.After(drainTimeout):
		a.logger.Warn("the broker stops, and does not wait any longer for answers of the HTTP API that are still being made")
	}
}

// enter waits for a place among those that are answered.
func enter(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	t := time.NewTimer(maxWait)
	defer t.Stop()
	select {
	case places <- struct{}{}:
		return nil
	case <-t.C:
	case <-ctx.Done():
	}
	return problem.Busy()
}

// remoteHost is where a request comes from, as rules have it.
func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return auth.Host(addr)
	}
	return host
}

// wantsCSV says whether a list is wanted as CSV: by ?format=csv, or by the Accept header.
func wantsCSV(r *http.Request) (bool, error) {
	if strings.Contains(r.URL.RawQuery, "format=") {
		switch format := r.URL.Query().Get("format"); format {
		case "csv":
			return true, nil
		case "json":
			return false, nil
		default:
			return false, problem.BadRequest("format is csv or json, not %q", format)
		}
	}
	accept, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	accept, _, _ = strings.Cut(accept, ";")
	return strings.TrimSpace(accept) == "text/csv", nil
}

// Reads is what the broker tells. Nothing of it changes anything.
type Reads interface {
	// Ready says why nothing can be read now; nil if all can.
	Ready() error
	// Image returns the metadata.
	Image() *metadata.Image
	// Node is this broker's node id.
	Node() int32
	// Snapshot and Lag are those of watch.Watch.
	Snapshot() *watch.Snapshot
	Lag(f func(*lag.Tracker))
	// Source has the facts of groups that this broker coordinates. Of others it says
	// who does (problem.Elsewhere).
	Source() groupview.Source
	// HeldBack finds, among the partitions in which a group has lag, those that an open
	// transaction holds back, and whose it is.
	HeldBack(ctx context.Context, g *groupview.Group, now time.Time) (map[groupview.TopicPartition]explain.HeldBack, error)
	// Changes returns the groups that something happened to from a number on, and the
	// number of the next change. It may have forgotten some in between.
	Changes(from uint64) (groups []string, next uint64, missed bool)
	// Journal searches the group journal.
	Journal(ctx context.Context, q facts.JournalQuery) (*facts.JournalPage, error)
}

// Gate says who people are and what they may do.
type Gate interface {
	// WantsLogin says whether people must say who they are.
	WantsLogin() bool
	// AlwaysWantsLogin says whether they must though there are no users in the cluster.
	AlwaysWantsLogin() bool
	// Login says who someone is. It is login.ErrLogin or login.ErrToken after a while if they are
	// not, and login.ErrLoginBusy if too many ask.
	Login(ctx context.Context, a login.Attempt) (login.Identity, error)
	// Holds says whether what someone has shown would still do: the password is the
	// same, and the user is there.
	Holds(id login.Identity) bool
	// Issuer is where people can log in elsewhere; nil for nowhere.
	Issuer() login.Issuer
	// LoggedOut hears of those who log out.
	LoggedOut(id login.Identity, host string)
	// May says whether someone may do something. A denial is noted, and the command
	// returned that would allow it.
	May(q auth.Request) (allowed bool, command string)
	// Sees says the same of one thing among many, and notes nothing.
	Sees(q auth.Request) bool
}
