package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"muster"
	"muster/internal/journal"
)

// history waits until a group's journal has so many lines, and returns them. The
// end of a rebalance replaces its start, so that a start means to wait.
func (s *shell) history(lines int, args ...string) []string {
	s.t.Helper()
	var out []string
	eventually(s.t, func() error {
		r := s.run(append([]string{"groups", "history"}, args...)...)
		if out = strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n"); len(out) != lines || len(args) == 1 && strings.Contains(r.stdout, " started ") {
			return fmt.Errorf("%d lines in\n%s%s", len(out), r.stdout, r.err)
		}
		return nil
	})
	return out
}

func TestGroupsHistory(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.rawMember("g", patience, "orders").mustJoin()
	s.run("groups", "members", "remove", "g", "--all", "--reason", "enough").ok()
	s.run("groups", "delete", "g", "-y").ok()
	lines := s.history(4, "g")
	same(t, "the title", lines[0], "TIME                 WHAT      GENERATION     TOOK  MOVED  MEMBERS  WHY")
	for i, want := range []string{" settled            1 ", " settled            2 ", " deleted            2        -      -        -  deleted by client muster at 127.0.0.1"} {
		says(t, lines[i+1], want)
	}
	says(t, lines[1], " 2      0→1  joined: raw-", " at 127.0.0.1")
	says(t, lines[2], " 2      1→0  removed: raw-", ` at 127.0.0.1 by client muster at 127.0.0.1 "enough"`)

	s.history(6, "g", "--all") // The starts, too.
	r := s.run("groups", "history", "g", "--limit", "1")
	same(t, "the lines of --limit 1", strings.Count(r.ok(), "\n"), 2)
	same(t, "stderr of --limit 1", r.err, "2 earlier entries are left out; --limit shows more\n")
	r = s.run("groups", "history", "other")
	same(t, "stdout for a group without a past", r.ok(), "")
	says(t, r.err, `the journal says nothing about a group "other" in the last day`)

	for _, line := range s.history(5, "g", "--json") {
		var e journal.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Group != "g" || e.Kind == "" || e.Time.IsZero() {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestGroupsHistoryFollows(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.rawMember("g", patience, "orders").mustJoin()
	s.history(2, "g")
	next, stop := s.start("groups", "history", "g", "--follow")
	says(t, next(), "TIME ")
	says(t, next(), "settled            1")
	s.rawMember("other", patience, "orders").mustJoin() // This is not to be seen.
	s.run("groups", "members", "remove", "g", "--all").ok()
	says(t, next(), "started            1")
	says(t, next(), "settled            2")
	stop()
}

func TestGroupsHistorySurvivesARestart(t *testing.T) {
	folder := t.TempDir()
	start := func() (*shell, *muster.Broker) {
		b := startBroker(t, muster.Config{Data: folder}, "group.initial.rebalance.delay.ms", "0")
		return &shell{t, b.Addr()}, b
	}
	s, b := start()
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.rawMember("g", patience, "orders").mustJoin()
	before := s.history(2, "g")
	must(t, b.Close())
	s, _ = start()
	loaded := s.history(3, "g")
	same(t, "the entry after the restart", loaded[1], before[1])
	says(t, loaded[2], " loaded             1        -      -        1  ")
	// The member is still there: a restart is no rebalance.
	same(t, "the number of members", len(s.describe("g").Members), 1)
	s.run("groups", "members", "remove", "g", "--all").ok()
	after := s.history(4, "g")
	same(t, "the first entry", after[1], before[1])
	says(t, after[3], "removed: raw-")
}
