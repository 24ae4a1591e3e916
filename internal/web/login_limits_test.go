package web

import (
	"errors"
	"net"
	"net/http"
	"testing"

	"muster/internal/assert"
	"muster/internal/web/problem"
)

// asked is a call of a route by someone.
func (f *fake) asked(t *testing.T, rt *route, addr net.IP, full bool, change ...func(*http.Request)) error {
	t.Helper()
	a := newAPI(&Options{Health: func() Health { return Health{} }, Reads: f, Gate: f, AnonymousFull: full}, &net.TCPAddr{IP: addr})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+Prefix+rt.path, http.NoBody)
	must(t, err)
	for _, c := range change {
		c(r)
	}
	_, _, err = a.answer(rt, r)
	return err
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// No one whom we do not know changes anything from another machine, or sees what is in
// records.
func TestWhoDoesNotLogInMayOnlyReadFromAfar(t *testing.T) {
	f := newFake(t)
	acts := get("act", "/act", "It changes something.", (*api).brokers)
	acts.acts = true
	shows := get("show", "/show", "It shows records.", (*api).brokers)
	shows.shows = true
	reads := get("read", "/read", "It changes nothing.", (*api).brokers)
	near, far, users := net.IPv4(127, 0, 0, 1), net.IPv4zero, map[string]string{"ann": "anns"}
	for name, c := range map[string]struct {
		users  map[string]string
		addr   net.IP
		full   bool
		change func(*http.Request)
		want   bool
	}{
		"from here":                    {nil, near, false, host("localhost:9021"), true},
		"from here by an address":      {nil, near, false, host("[::1]:9021"), true},
		"from here by a mapped one":    {nil, near, false, host("[::ffff:127.0.0.1]:9021"), true},
		"from afar":                    {nil, far, false, host("localhost"), false},
		"from afar where all may":      {nil, far, true, host("10.0.0.1"), true},
		"a user from afar":             {users, far, false, as("ann", "anns"), true},
		"by a proxy":                   {nil, near, false, header("X-Forwarded-For", "10.0.0.1"), false},
		"by a proxy that knows RFCs":   {nil, near, false, header("Forwarded", "for=10.0.0.1"), false},
		"by a proxy that keeps names":  {nil, near, false, host("muster.example.org"), false},
		"by a proxy where all may":     {nil, near, true, host("muster.example.org"), true},
		"a user who came by the proxy": {users, near, false, func(r *http.Request) { r.Host = "muster.example.org"; r.SetBasicAuth("ann", "anns") }, true},
	} {
		f.users = c.users
		for _, rt := range []*route{&acts, &shows} {
			err := f.asked(t, rt, c.addr, c.full, c.change)
			var p *problem.Problem
			if (err == nil) != c.want || err != nil && (!errors.As(err, &p) || p.Status != http.StatusForbidden || p.Message == "") {
				t.Errorf("%s, %s: %v", name, rt.name, err)
			}
		}
		assert.NoError(t, f.asked(t, &reads, c.addr, c.full, c.change), "%s, to read", name)
	}
}

func TestTheSessionSaysWhoSomebodyIsAndWhatIsOpenToThem(t *testing.T) {
	f := newFake(t)
	s := serve(t, f)
	got := read[Session](s, "/session")
	if got.User != nil || got.Login != "none" || got.LoginWanted || !got.May.Act || !got.May.Records || got.ReadOnly != nil {
		t.Errorf("from here it is %+v", got)
	}
	f.users = map[string]string{"ann": "anns", "bob": "busy"}
	if got = read[Session](s, "/session"); got.User != nil || !got.LoginWanted || got.May.Act || got.May.Records || got.ReadOnly == nil {
		t.Errorf("before the login it is %+v", got)
	}
	s.change = as("ann", "anns")
	if got = read[Session](s, "/session"); got.User == nil || *got.User != "ann" || got.Login != "basic" || !got.May.Act || got.ReadOnly != nil {
		t.Errorf("after the login it is %+v", got)
	}
	s.change = nil
	s.fails(Prefix+"/session", http.StatusUnauthorized, as("ann", "wrong"))
	s.fails(Prefix+"/session", http.StatusServiceUnavailable, as("bob", "x"))

	f.users = nil
	l, err := net.Listen("tcp", "0.0.0.0:0")
	must(t, err)
	if got = read[Session](serveOn(t, l, f), "/session"); got.May.Act || got.May.Records || got.ReadOnly == nil || *got.ReadOnly != strangersOnlyRead {
		t.Errorf("from afar it is %+v", got)
	}
}

// A browser that is told how to log in asks by itself, in a window that no one can leave.
func TestPagesAreNotToldHowToLogIn(t *testing.T) {
	f := newFake(t)
	f.users = map[string]string{"ann": "anns"}
	s := serve(t, f)
	for _, path := range []string{"/groups", "/events?watch=groups"} {
		for name, c := range map[string]struct {
			change func(*http.Request)
			told   bool
		}{
			"a program":                     {func(*http.Request) {}, true},
			"the console":                   {header("X-Requested-With", "muster"), false},
			"a page":                        {header("Sec-Fetch-Dest", "empty"), false},
			"a stream that cannot say more": {header("Accept", "text/event-stream"), false},
		} {
			resp, _ := s.do(http.MethodGet, Prefix+path, c.change)
			if told := resp.Header.Get("WWW-Authenticate") != ""; resp.StatusCode != http.StatusUnauthorized || told != c.told {
				t.Errorf("%s, %s: %d, told %t", path, name, resp.StatusCode, told)
			}
		}
	}
}
