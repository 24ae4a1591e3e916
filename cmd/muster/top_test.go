package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/broker"
	"muster/internal/web"
)

var errNotYet = errors.New("not yet")

func secretFile(t *testing.T, secret string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// topWorld is a broker with three groups, one of them with a name that would give
// commands to a terminal.
func topWorld(t *testing.T) (*shell, string) {
	t.Helper()
	b, err := broker.Open(t.Context(), broker.Config{Properties: map[string]string{
		"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "mem", "muster.http.listener": "127.0.0.1:0",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	s := &shell{t, b.Addr()}
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.pipe(records(0, 3, 0), "produce", "orders", "--json-lines").ok()
	for _, group := range []string{"billing", "shipping", "evil\x1b[2J"} {
		commit(t, s.client(), group, "orders", 1)
	}
	b.Status().Pass(t.Context())
	return s, b.HTTPAddr()
}

func TestTopPrintsATableWhereThereIsNoTerminal(t *testing.T) {
	s, address := topWorld(t)
	out := s.run("top", "--sort", "name").ok()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "GROUP") || !strings.Contains(lines[0], "CATCH-UP") {
		t.Errorf("it prints\n%s", out)
	}
	says(t, out, "billing", "shipping", "Empty", "evil·[2J", "lag without members", "no members")
	if strings.Contains(out, "\x1b") {
		t.Errorf("names give commands to the terminal: %q", out)
	}
	// The broker need not be a Kafka client's: the address is enough.
	out = (&shell{t: t}).run("top", "--once", "--http", address, "--filter", "SHIP").ok()
	if says(t, out, "shipping"); strings.Contains(out, "billing") {
		t.Errorf("the filter lets through\n%s", out)
	}
	list := decode[web.GroupList](s.run("top", "--json", "--sort", "name"))
	if len(list.Groups) != 3 || list.Groups[0].Name != "billing" {
		t.Errorf("as JSON: %+v", list)
	}
}

func TestTopRefusesWhatItCannotDo(t *testing.T) {
	s := &shell{t: t}
	s.run("top", "--sort", "size").fails(exitUsage, "--sort is one of lag,")
	s.run("top", "--every", "1ms").fails(exitUsage, "--every is 200ms at least")
	s.run("top", "--http", "ftp://x").fails(exitUsage, "--http takes an address")
	s.run("top", "--http", freeAddress(t)).fails(exitFailed, "no broker answers HTTP at http://127.0.0.1:", "connection refused")
	for body, want := range map[string]string{
		`{"message": "no\u001b[2J"}`: "no·[2J", "<html>": "is no muster broker: it says 418", "200": "is no muster broker",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if body != "200" {
				w.WriteHeader(http.StatusTeapot)
			}
			_, _ = w.Write([]byte(body))
		}))
		s.run("top", "--http", server.URL).fails(exitFailed, want)
		server.Close()
	}
}

func TestTopLogsIn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "ann" || password != "right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(web.GroupList{Groups: []web.GroupRow{{Name: "billing"}}})
	}))
	defer server.Close()
	s := &shell{t: t}
	s.run("top", "--http", server.URL).fails(exitFailed, "--user says who you are")
	s.run("top", "--http", server.URL, "--user", "ann", "--password-file", secretFile(t, "wrong")).fails(exitFailed, "refuses the login of ann")
	says(t, s.run("top", "--http", server.URL, "--user", "ann", "--password-file", secretFile(t, "right")).ok(), "billing")
}

// A broker may name any address. A password is not sent there for all to read, unless
// somebody says so.
func TestTopSendsNoPasswordInPlainTextWhereverABrokerSays(t *testing.T) {
	for advertised, refused := range map[string]bool{"http://kafka.example.org:9021": true, "": false} {
		props := map[string]string{"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "muster.bootstrap.user": "ann:right", "muster.store": "mem", "muster.http.listener": "127.0.0.1:0"}
		if advertised != "" {
			props["muster.http.advertised"] = advertised
		}
		b, err := broker.Open(t.Context(), broker.Config{Properties: props})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		s, login := &shell{t, b.Addr()}, []string{"top", "--user", "ann", "--password-file", secretFile(t, "right")}
		if refused {
			s.run(login...).fails(exitFailed, "plain text", "the password of ann", "--http "+advertised)
		} else {
			s.run(login...).ok()
		}
		s.run(append(login, "--http", b.HTTPURL())...).ok()
	}
	for address, want := range map[string]bool{
		"http://10.0.0.7:9021": true, "http://kafka-1": true, "http://localhost.example.org:80": true, "http://[2001:db8::1]:80": true,
		"http://127.0.0.1:9021": false, "http://[::1]:80": false, "http://localhost:80": false, "https://kafka-1": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		same(t, address, exposes(u), want)
	}
}

func TestWhereABrokerListensIsMadeWhereToGo(t *testing.T) {
	for listens, want := range map[string]string{
		"127.0.0.1:9021": "127.0.0.1:9021", "0.0.0.0:80": "broker7:80", ":80": "broker7:80", "[::]:80": "broker7:80",
		"127.0.0.1:0": "", "https://console.example.org": "https://console.example.org", "": "",
	} {
		same(t, listens, reachable(listens, "broker7"), want)
	}
}

// seenList is a view with groups.
func seenList(names ...string) *topView {
	v := &topView{address: "http://x", now: time.Now()}
	list := &web.GroupList{At: &v.now}
	for i, name := range names {
		list.Groups = append(list.Groups, web.GroupRow{Name: name, State: "Stable", Lag: int64(1234567 * i)})
	}
	v.take("", list, nil, nil)
	return v
}

func screen(v *topView, width, height int) string {
	var out []string
	for _, l := range v.lines(width, height) {
		text := strings.TrimRight(l.text, " ")
		if l.chose {
			text = "> " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

func TestTheKeysOfTop(t *testing.T) {
	v := seenList("a", "b", "c")
	for _, c := range []struct {
		keys, chosen, query, open string
		changed, quit             bool
	}{
		{keys: "j", chosen: "b"}, {keys: "\x1b[B\x1bOB", chosen: "c"}, {keys: "j", chosen: "c"}, {keys: "\x1b[A", chosen: "b"},
		{keys: "\x1b[5~k", chosen: "a"}, {keys: "/", chosen: "a"}, {keys: "qéx", query: "qéx", chosen: "a", changed: true},
		{keys: "\x7f", query: "qé", chosen: "a", changed: true}, {keys: "\x1b[B", query: "qé", chosen: "a"}, {keys: "\r", query: "qé", chosen: "a"},
		{keys: "\x1b", chosen: "a", changed: true}, {keys: "s", chosen: "a", changed: true}, {keys: "S", chosen: "a", changed: true},
		{keys: "\r", chosen: "a", open: "a", changed: true}, {keys: "j", chosen: "a", open: "a"}, {keys: "\x1b", chosen: "a", changed: true},
		{keys: "q", chosen: "a", quit: true}, {keys: "/\x03", chosen: "a", quit: true},
	} {
		var changed, quit bool
		for _, key := range splitKeys(c.keys) {
			changed, quit = v.press(key)
		}
		if changed != c.changed || quit != c.quit || v.chosen != c.chosen || v.query != c.query || v.open != c.open {
			t.Errorf("after %q: %q, %q, %q, %t, %t", c.keys, v.chosen, v.query, v.open, changed, quit)
		}
	}
	if v.sort != 1 || v.down {
		t.Errorf("sorted by %d, %t", v.sort, v.down)
	}
}

func TestTopFitsEveryScreen(t *testing.T) {
	v := seenList("a", "b", "a name that is longer than others", "d", "e", "f")
	v.move(4)
	for _, size := range [][2]int{{80, 24}, {20, 6}, {1, 1}, {5, 2}, {200, 50}} {
		lines := v.lines(size[0], size[1])
		if len(lines) != size[1] {
			t.Errorf("%v has %d lines", size, len(lines))
		}
		for _, l := range lines {
			if n := len([]rune(l.text)); n > size[0] {
				t.Errorf("%v has a line of %d columns: %s", size, n, l.text)
			}
		}
		if chosen := slices.ContainsFunc(lines, func(l line) bool { return l.chose }); size[1] >= 6 && !chosen {
			t.Errorf("on %v the chosen group is not to be seen:\n%s", size, screen(v, size[0], size[1]))
		}
	}
	says(t, screen(v, 80, 24), "> e  ", "4,938,268", "LAG↑", "Enter why")
	v.err = errNotYet
	says(t, screen(v, 80, 24), "! "+errNotYet.Error(), "> e  ")
}

func TestTopExplainsAGroup(t *testing.T) {
	v := seenList("a")
	v.press("\r")
	says(t, screen(v, 80, 24), "The broker is asked about a")
	long := strings.Repeat("word ", 60)
	v.take("a", nil, &web.Explanation{Name: "a", Text: "Group a is fine.", Journal: true, Findings: []web.Finding{{ID: "x", Text: long, Change: "Do\x1b[2J it."}}}, nil)
	says(t, screen(v, 60, 30), "Group a is fine.", "What is odd:", "What to do: Do·[2J it.")
	v.take("b", nil, &web.Explanation{Text: "late"}, nil)
	if strings.Contains(screen(v, 60, 30), "late") {
		t.Error("an answer about another group is shown")
	}
	v.scroll = 1000
	if got := screen(v, 30, 8); !strings.Contains(got, "it.") {
		t.Errorf("at its end there is\n%s", got)
	}
}
