package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/watch"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
	"muster/internal/web/facts"
	"muster/internal/web/login"
	"muster/internal/web/problem"
)

// fake is a broker in memory: real types, filled by hand.
type fake struct {
	image    *metadata.Image
	snapshot *watch.Snapshot
	tracker  *lag.Tracker
	groups   map[string]groupview.Description
	entries  []explain.Entry
	held     map[groupview.TopicPartition]explain.HeldBack
	notReady error
	always   bool
	holds    func() // Called by Journal.

	mu      sync.Mutex // Of the rest that changes while a stream is open.
	touched []string
	missed  bool

	users  map[string]string
	tokens map[string]string
	left   []string
	issuer login.Issuer
	denies map[string]bool // operation type name
	denied []string
}

var now = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newFake has the topic orders with two partitions, of which the group billing has read
// all but 90 records and shipping everything, and a group without members.
func newFake(t *testing.T) *fake {
	t.Helper()
	cfg, err := config.NewBroker(map[string]string{"muster.bootstrap.user": "root:secret", "num.partitions": "6"})
	must(t, err)
	edit := metadata.NewImage(cfg, metadata.Broker{ID: 1, Endpoints: []metadata.Endpoint{{Listener: "PLAINTEXT", Host: "127.0.0.1", Port: 9092}}}).Edit()
	edit.SetClusterID("test")
	led := []metadata.Partition{{Leader: 1}, {Leader: 1}}
	edit.PutTopic(metadata.Topic{Name: "orders", ID: metadata.TopicID{1}, Partitions: led, Set: map[string]string{"retention.ms": "1000"}})
	edit.PutTopic(metadata.Topic{Name: "payments", ID: metadata.TopicID{2}, Partitions: led[:1]})
	f := &fake{image: edit.Image(), tracker: lag.NewTracker(lag.Limits{Bytes: 1 << 20}, nil), denies: map[string]bool{}}
	bounds := func(end int64) lag.Bounds { return lag.Bounds{End: end} }
	for i, committed := range []int64{5, 10} {
		f.tracker.Begin(now.Add(time.Duration(i-1) * watch.Interval))
		f.tracker.Log(lag.Log{Topic: "orders", Bounds: bounds(100), LastStable: 100, Added: 100})
		f.tracker.Log(lag.Log{Topic: "orders", Partition: 1, Bounds: bounds(100), LastStable: 100, Added: 100})
		f.tracker.Group(lag.Group{Name: "billing", Members: 1, Positions: []lag.Position{{Topic: "orders", Committed: committed}, {Topic: "orders", Partition: 1, Committed: 100}}})
		f.tracker.Group(lag.Group{Name: "shipping", Members: 1, Positions: []lag.Position{{Topic: "orders", Committed: 100}}})
		f.tracker.End()
	}
	f.snapshot = &watch.Snapshot{At: now, Node: 1, Topics: []watch.Topic{
		{Name: "orders", ID: metadata.TopicID{1}, Partitions: []watch.Partition{{Leader: 1, Here: true, End: 100, LastStable: 100, Bytes: 4000, Dense: true}, {Number: 1, Leader: 1, Here: true, Start: 20, End: 1 << 60, LastStable: 100, Bytes: 1000}}},
		{Name: "payments", ID: metadata.TopicID{2}, Partitions: []watch.Partition{{Leader: -1}}},
		{Name: "__x", Internal: true},
	}}
	slices.SortFunc(f.snapshot.Topics, func(a, b watch.Topic) int { return strings.Compare(a.Name, b.Name) })
	f.snapshot.Groups = list.Build([]list.GroupRow{
		{Name: "billing", Type: "classic", State: "Stable", Members: 1, Lag: 90, LagSeconds: 600, Findings: []string{"not-catching-up"}, Topics: []string{"orders"}},
		{Name: "shipping", Type: "consumer", State: "Stable", Members: 1, Topics: []string{"orders"}},
		{Name: "=SUM(A1)", Type: "classic", State: "Empty", Lag: 7, LagSeconds: 3, Stuck: 0, Findings: []string{"lag-without-members"}, Topics: []string{"payments"}},
	})
	f.groups = map[string]groupview.Description{"billing": {
		Group: groupview.Group{
			State: groupview.Stable, ProtocolType: groupview.Consumer, Assignor: "range", Coordinator: &groupview.Coordinator{Broker: 1, Address: "127.0.0.1:9092"},
			Members: []groupview.Member{{ID: "m-1", ClientID: "m", Host: "10.0.0.1", Topics: []string{"orders"}, Assigned: []groupview.Assigned{{Topic: "orders", Partitions: []int32{0, 1}}}}},
		},
		Committed: map[groupview.TopicPartition]groupview.Commit{{Topic: "orders"}: {Offset: 10}, {Topic: "orders", Partition: 1}: {Offset: 1<<60 - 1}},
	}}
	return f
}

func (f *fake) Ready() error                { return f.notReady }
func (f *fake) Image() *metadata.Image      { return f.image }
func (f *fake) Node() int32                 { return 1 }
func (f *fake) Snapshot() *watch.Snapshot   { return f.snapshot }
func (f *fake) Lag(read func(*lag.Tracker)) { read(f.tracker) }
func (f *fake) Source() groupview.Source    { return f }

func (f *fake) HeldBack(context.Context, *groupview.Group, time.Time) (map[groupview.TopicPartition]explain.HeldBack, error) {
	return maps.Clone(f.held), nil
}

func (f *fake) Changes(from uint64) (groups []string, next uint64, missed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	missed, f.missed = f.missed && from > 0, f.missed && from == 0
	return f.touched[min(from, uint64(len(f.touched))):], uint64(len(f.touched)), missed
}

func (f *fake) Journal(_ context.Context, q facts.JournalQuery) (*facts.JournalPage, error) {
	if f.holds != nil {
		f.holds()
	}
	out := &facts.JournalPage{Exists: true}
	for _, e := range f.entries {
		if (q.Group == "" || e.Group == q.Group) && !e.Time.Before(q.Since) && (q.Match == nil || q.Match(&e)) {
			out.Entries = append(out.Entries, e)
		}
	}
	if more := len(out.Entries) - q.Limit; more > 0 {
		out.Entries, out.Partly = out.Entries[more:], true
	}
	return out, nil
}

func (f *fake) Describe(_ context.Context, names []string) (map[string]groupview.Description, error) {
	out := map[string]groupview.Description{}
	for _, name := range names {
		d, ok := f.groups[name]
		if !ok {
			d.Err = &groupview.NoGroupError{Name: name}
		}
		out[name] = d
	}
	return out, nil
}

func (f *fake) Logs(context.Context, []string) (map[string]groupview.Log, error) {
	return map[string]groupview.Log{"orders": {Partitions: 2, Bounds: map[int32]groupview.Bounds{0: {End: 100}, 1: {Start: 20, End: 1 << 60}}}}, nil
}

func (f *fake) FirstTimes(context.Context, map[groupview.TopicPartition]int64) (map[groupview.TopicPartition]time.Time, error) {
	return nil, nil
}

func (f *fake) WantsLogin() bool { return f.users != nil }

func (f *fake) AlwaysWantsLogin() bool { return f.always }

func (f *fake) Login(_ context.Context, a login.Attempt) (login.Identity, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Token != "" {
		if f.tokens[a.Token] == "" {
			return login.Identity{}, login.ErrToken
		}
		return login.Identity{Principal: auth.User(f.tokens[a.Token]), Ends: now.Add(time.Minute)}, nil
	}
	switch f.users[a.Name] {
	case "":
		return login.Identity{}, login.ErrLogin
	case "busy":
		return login.Identity{}, login.ErrLoginBusy
	case a.Password:
		return login.Identity{Principal: auth.User(a.Name), Proof: a.Password}, nil
	}
	return login.Identity{}, login.ErrLogin
}

func (f *fake) Holds(id login.Identity) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return id.Proof == "" || f.users[strings.TrimPrefix(string(id.Principal), "User:")] == id.Proof
}

func (f *fake) Issuer() login.Issuer { return f.issuer }

func (f *fake) LoggedOut(id login.Identity, _ string) { f.left = append(f.left, string(id.Principal)) }

func (f *fake) May(q auth.Request) (bool, string) {
	if f.Sees(q) {
		return true, ""
	}
	f.denied = append(f.denied, right(q))
	return false, "muster acls add …"
}

func (f *fake) Sees(q auth.Request) bool { return !f.denies[right(q)] }

func right(q auth.Request) string { return q.Operation.String() + " " + q.Type.String() + " " + q.Name }

// site is a server of a fake.
type site struct {
	t *testing.T
	*Server
	client *http.Client
	change func(*http.Request) // Of every request; nil for nothing.
}

func serve(t *testing.T, f *fake, more ...func(*Options)) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return serveOn(t, l, f, more...)
}

func serveOn(t *testing.T, l net.Listener, f *fake, more ...func(*Options)) *site {
	t.Helper()
	opts := Options{
		Health: func() Health { return Health{Node: 1, Store: "memory"} }, Reads: f, Gate: f,
		Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	}
	for _, change := range more {
		change(&opts)
	}
	s := &site{t: t, Server: Serve(l, opts), client: &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		s.Close()
	})
	return s
}

// reply is an answer without its body.
type reply struct {
	StatusCode int
	Header     http.Header
}

// do sends a request and returns the answer.
func (s *site) do(method, path string, change ...func(*http.Request)) (reply, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.Addr().String()+path, http.NoBody)
	must(s.t, err)
	if s.change != nil {
		s.change(req)
	}
	for _, c := range change {
		c(req)
	}
	resp, err := s.client.Do(req)
	must(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(s.t, err)
	return reply{resp.StatusCode, resp.Header}, string(body)
}

// get reads an answer that must be there.
func read[A any](s *site, path string) A {
	s.t.Helper()
	resp, body := s.do(http.MethodGet, Prefix+path)
	var out A
	assert.MustEqual(s.t, resp.StatusCode, http.StatusOK, "%s: %s", path, body)
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	assert.Must(s.t, d.Decode(&out), "%s: in %s", path, body)
	return out
}

// fails reads a problem.
func (s *site) fails(path string, status int, change ...func(*http.Request)) problem.Problem {
	s.t.Helper()
	resp, body := s.do(http.MethodGet, path, change...)
	var out problem.Problem
	if err := json.Unmarshal([]byte(body), &out); err != nil || resp.StatusCode != status || out.Code == "" || out.Message == "" {
		s.t.Errorf("%s: %d %q, want a problem with %d (%v)", path, resp.StatusCode, body, status, err)
	}
	return out
}

var errStarting = errors.New("the broker starts")

// set changes a password.
func (f *fake) set(name, password string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users[name] = password
}
