package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/web"
)

// topWorld is a broker with three groups, one of them with a name that would give
// commands to a terminal.
func topWorld(t *testing.T) (*shell, string) {
	t.Helper()
	b, err := broker.Open(t.Context(), broker.Config{Properties: map[string]string{
		"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "mem", "muster.http.listener": "127.0.0.1:0",
	}})
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	s := &shell{t, b.Addr()}
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.pipe(recordLines(0, 3, 0), "produce", "orders", "--json-lines").ok()
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
	assert.True(t, len(lines) == 4 && strings.HasPrefix(lines[0], "GROUP") && strings.Contains(lines[0], "CATCH-UP"), "it prints\n%s", out)
	says(t, out, "billing", "shipping", "Empty", "evil·[2J", "lag without members", "no members")
	assert.False(t, strings.Contains(out, "\x1b"), "names give commands to the terminal: %q", out)
	// The broker need not be a Kafka client's: the address is enough.
	out = (&shell{t: t}).run("top", "--once", "--http", address, "--filter", "SHIP").ok()
	if says(t, out, "shipping"); strings.Contains(out, "billing") {
		t.Errorf("the filter lets through\n%s", out)
	}
	list := decode[web.GroupList](s.run("top", "--json", "--sort", "name"))
	assert.True(t, len(list.Groups) == 3 && list.Groups[0].Name == "billing", "as JSON: %+v", list)
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
	s.run("top", "--http", server.URL, "--user", "ann", "--password-file", file(t, "secret", "wrong")).fails(exitFailed, "refuses the login of ann")
	says(t, s.run("top", "--http", server.URL, "--user", "ann", "--password-file", file(t, "secret", "right")).ok(), "billing")
}

// A broker may name any address. A password is not sent there for all to read, unless
// the user says so.
func TestTopSendsNoPasswordInPlainTextWhereverABrokerSays(t *testing.T) {
	for advertised, refused := range map[string]bool{"http://kafka.example.org:9021": true, "": false} {
		props := map[string]string{"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "muster.bootstrap.user": "ann:right", "muster.store": "mem", "muster.http.listener": "127.0.0.1:0"}
		if advertised != "" {
			props["muster.http.advertised"] = advertised
		}
		b, err := broker.Open(t.Context(), broker.Config{Properties: props})
		must(t, err)
		t.Cleanup(func() { _ = b.Close() })
		s, login := &shell{t, b.Addr()}, []string{"top", "--user", "ann", "--password-file", file(t, "secret", "right")}
		if refused {
			s.run(login...).fails(exitFailed, "plain text", "the password of ann", "--http "+advertised)
		} else {
			s.run(login...).ok()
		}
		s.run(append(login, "--http", b.HTTPURL())...).ok()
	}
}
