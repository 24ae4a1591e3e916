package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muster/internal/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long anything may take on a machine that is busy.
const patience = 4 * time.Minute

// quick is a timing for tests: what happens after minutes happens after seconds.
var quick = timing{
	joined: time.Second, away: 300 * time.Millisecond, lives: 2 * time.Second, gone: 5 * time.Second, session: time.Second,
	rests: time.Minute, open: time.Hour / 5, between: time.Minute, heartbeat: 100 * time.Millisecond,
}

// seen is a demo that is looked at from outside.
type seen struct {
	t     *testing.T
	demo  *Demo
	ahead atomic.Int64 // How far the broker's clock is moved, in nanoseconds.
}

func start(t *testing.T) *seen {
	t.Helper()
	s := &seen{t: t}
	d, err := Start(t.Context(), Options{
		Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0", Seed: 1, timing: &quick,
		properties: map[string]string{"group.min.session.timeout.ms": "1", "group.consumer.min.heartbeat.interval.ms": "100", "group.consumer.heartbeat.interval.ms": "100", "group.initial.rebalance.delay.ms": "200"},
		clock:      func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.demo = d
	return s
}

// ask reads an answer of the API.
func ask[A any](s *seen, path string) (out A, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get("http://" + s.demo.HTTP() + web.Prefix + path)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, body)
	}
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	return out, err
}

// state is all that the API says of a group.
type state struct {
	row    web.GroupRow
	detail web.GroupDetail
	why    web.Explanation
}

func (s *seen) state(group string) (out state, err error) {
	s.demo.broker.Status().Pass(s.t.Context())
	list, err := ask[web.GroupList](s, "/groups?limit=1000")
	if err != nil {
		return out, err
	}
	i := slices.IndexFunc(list.Groups, func(g web.GroupRow) bool { return g.Name == group })
	if i < 0 {
		return out, fmt.Errorf("there is no group %s", group)
	}
	out.row = list.Groups[i]
	if out.detail, err = ask[web.GroupDetail](s, "/groups/"+group); err == nil {
		out.why, err = ask[web.Explanation](s, "/groups/"+group+"/explain")
	}
	return out, err
}

// found returns the text of a finding, empty without.
func (s state) found(id string) string {
	for _, f := range s.why.Findings {
		if f.ID == id {
			return f.Text
		}
	}
	return ""
}

// verdict says whether a partition of the group has it.
func (s state) verdict(want string) bool {
	return slices.ContainsFunc(s.detail.Partitions, func(p web.GroupPartition) bool { return p.Verdict == want })
}

// promise is how a group shows what is told of it.
type promise struct {
	later bool // By rules that take minutes.
	kept  func(state) bool
}

var promises = map[string]promise{
	"billing": {kept: func(s state) bool { // Members that join apart leave findings about that.
		return s.row.State == "Stable" && s.row.Members == 3 && len(s.row.Findings) == 0 && s.row.Lag < 1000
	}},
	"email-sender": {kept: func(s state) bool { return s.found("rebalance-storm") != "" }},
	"search-index": {later: true, kept: func(s state) bool {
		return s.detail.Watched != nil && s.detail.Watched.CatchUp == "catching" && s.row.Lag > 0
	}},
	"fraud-check":    {later: true, kept: func(s state) bool { return s.found("not-catching-up") != "" }},
	"warehouse":      {later: true, kept: func(s state) bool { return s.verdict("not-committing") && s.row.Stuck == 1 }},
	"invoices":       {kept: func(s state) bool { return s.row.Poison == 1 && s.found("poison-suspect") != "" }},
	"loyalty-points": {later: true, kept: func(s state) bool { return s.verdict("not-fetching") && s.row.Stuck == 3 }},
	"tax-report":     {later: true, kept: func(s state) bool { return s.verdict("no-owner") && s.row.Stuck == 1 }},
	"stock-keeper":   {kept: func(s state) bool { return strings.Contains(s.found("static-member-gone"), "stock-keeper-3") }},
	"customer-360":   {kept: func(s state) bool { return strings.Contains(s.found("different-subscriptions"), "newsletter") }},
	"ledger":         {kept: func(s state) bool { return strings.Contains(s.found("open-transaction"), "month-end-close") }},
	"recommendations": {kept: func(s state) bool {
		return s.row.Type == "consumer" && s.row.State == "Stable" && s.row.Members == 2 && s.row.Lag < 1000
	}},
	"legacy-export": {kept: func(s state) bool { return s.row.Members == 0 && s.row.Lag > 0 && s.found("lag-without-members") != "" }},
}

// Every state that the demo promises is seen over the API, and at the end nothing is left.
func TestEveryPromisedStateIsSeen(t *testing.T) {
	s := start(t)
	if len(promises) != len(Groups()) {
		t.Errorf("%d groups, and %d promises", len(Groups()), len(promises))
	}
	for _, later := range []bool{false, true} {
		for _, g := range Groups() {
			if p, ok := promises[g.Name]; ok && p.later == later {
				s.await(g, later, p.kept)
			}
		}
		s.minutesPass()
	}
	address := s.demo.Addr()
	if err := s.demo.Close(); err != nil {
		t.Error(err)
	}
	for until := time.Now().Add(patience); ; { // Another program may have taken the port.
		c, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		_ = c.Close()
		if time.Now().After(until) {
			t.Fatal("the broker still listens")
		}
		<-time.After(100 * time.Millisecond)
	}
}

// minutesPass moves the broker's clock farther than its rules want to see.
func (s *seen) minutesPass() { s.ahead.Add(int64(6 * time.Minute)) }

// await waits until a group shows what is told of it. Where that takes minutes, more of
// them pass now and then, since what stands still may have moved when the last did.
func (s *seen) await(g Group, later bool, kept func(state) bool) {
	s.t.Helper()
	const looks = 40
	var last state
	var err error
	until := time.Now().Add(patience)
	for n := 1; time.Now().Before(until); n++ {
		if last, err = s.state(g.Name); err == nil && kept(last) {
			return
		}
		if later && n%looks == 0 {
			s.minutesPass()
		}
		select {
		case <-s.t.Context().Done():
			s.t.Fatal(s.t.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	s.t.Errorf("of %s it is promised: %s\nbut there is %+v\n%+v\n%+v, %v", g.Name, g.Look, last.row, last.detail.Partitions, last.why.Findings, err)
}

func TestAnAddressThatIsTakenIsLeftAlone(t *testing.T) {
	got, free := "", ""
	for range 10 { // Another program may take the port once it is free.
		if got, free = takenAndFree(t); got == free {
			return
		}
	}
	t.Errorf("%s is free, and it wants %s", free, got)
}

// takenAndFree asks for a port that is taken, and then for the same one, which is free.
func takenAndFree(t *testing.T) (got, free string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := l.Addr().String()
	if got := address("", taken); got == taken {
		t.Errorf("%s is taken, and wanted", got)
	}
	if got := address(taken, "127.0.0.1:0"); got != taken {
		t.Errorf("asked for %s, it wants %s", taken, got)
	}
	_ = l.Close()
	return address("", taken), taken
}

func TestASeedMakesTheSameRecords(t *testing.T) {
	text := func(seed uint64) string {
		d := &Demo{seed: seed}
		random, out := d.random(1), ""
		for i := range topics {
			r := topics[i].record(random)
			var value fields
			if err := json.Unmarshal(r.Value, &value); err != nil || r.Topic != topics[i].name {
				t.Errorf("%s has %s, %v", r.Topic, r.Value, err)
			}
			delete(value, "at")
			out += fmt.Sprintln(string(r.Key), value)
		}
		return out
	}
	first, again, other := text(1), text(1), text(2)
	if first != again || first == other {
		t.Errorf("seed 1 makes\n%s and then\n%s seed 2\n%s", first, again, other)
	}
}
