package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/groups"
	"muster/internal/assert"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
)

// resetShell has a topic with ten records in partition 0, two of them an hour
// old, and four in partition 1; group g has committed 4 of partition 0.
func resetShell(t *testing.T) *shell {
	t.Helper()
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.pipe(recordLines(0, 2, time.Hour)+recordLines(0, 8, 0)+recordLines(1, 4, 0), "produce", "orders", "--json-lines").ok()
	commit(t, s.client(), "g", "orders", 4)
	return s
}

// committed words the committed offsets of a group.
func (s *shell) committed(group string) string {
	s.t.Helper()
	var out []string
	for _, p := range s.describe(group).Partitions {
		out = append(out, p.Name()+"="+cli.OrDash(p.Committed, cli.FormatInt))
	}
	return strings.Join(out, " ")
}

func TestGroupsResetIsADryRunUntilExecute(t *testing.T) {
	s := resetShell(t)
	args := []string{"groups", "reset", "g", "--topic", "orders", "--to-latest"}
	table := `TOPIC   PARTITION  CURRENT  NEW  CHANGE  LAG AFTER  NOTE
orders          0        4   10      +6          0  
orders          1        -    4       -          0  
`
	r := s.run(args...)
	same(t, "the dry run", r.ok(), table)
	same(t, "stderr of the dry run", r.err, "this is a dry run, nothing was changed; --execute moves 2 partitions\n")
	same(t, "the offsets after the dry run", s.committed("g"), "orders-0=4")

	r = s.run(append(args, "--execute")...)
	same(t, "the reset", r.ok(), table)
	says(t, r.err, "moved the committed offsets of group g in 2 partitions\nto move them back: muster groups reset g --undo r")
	same(t, "the offsets after the reset", s.committed("g"), "orders-0=10 orders-1=4")

	r = s.run(append(args, "--execute")...)
	r.ok()
	same(t, "stderr of another reset", r.err, "nothing to change: group g is there already\n")
}

func TestGroupsResetTargets(t *testing.T) {
	s := resetShell(t)
	for _, c := range []struct{ flags, want string }{
		{"--topic orders --to-earliest", "0=0 1=0"},
		{"--topic orders:1 --to-earliest", "1=0"},
		{"--topic orders:1,0 --to-latest", "0=10 1=4"},
		{"--topic orders --to-offset 3", "0=3 1=3"},
		{"--topic orders --to-offset 7", "0=7 1=4 (7 is beyond the end)"},
		{"--topic orders --to-timestamp -30m", "0=2 1=0"},
		{"--topic orders --to-timestamp -2h", "0=0 1=0"},
		{"--topic orders --to-timestamp 2100-01-01T00:00:00Z", "0=10 (no record is that young) 1=4 (no record is that young)"},
		{fmt.Sprintf("--topic orders --to-timestamp %d", time.Now().Add(-30*time.Minute).UnixMilli()), "0=2 1=0"},
		{"--topic orders --shift-by 3", "0=7 1=- (left alone: nothing is committed that could be shifted)"},
		{"--all-topics --shift-by -1", "0=3"},
		{"--all-topics --shift-by -9", "0=0 (-5 is before the log start)"},
		{"--all-topics --shift-by 9", "0=10 (13 is beyond the end)"},
	} {
		r := decode[groups.ResetGroup](s.run(append([]string{"groups", "reset", "g", "--json"}, strings.Fields(c.flags)...)...))
		var got []string
		for _, p := range r.Partitions {
			text := fmt.Sprintf("%d=%s", p.Partition, cli.OrDash(p.New, cli.FormatInt))
			if p.Note != "" {
				text += " (" + p.Note + ")"
			}
			got = append(got, text)
		}
		same(t, c.flags, strings.Join(got, " "), c.want)
		assert.True(t, !r.Executed && r.Name == "g", "%s: %+v", c.flags, r)
	}
	same(t, "the offsets", s.committed("g"), "orders-0=4")
}

func TestGroupsResetRefusesAConsumerGroupInUse(t *testing.T) {
	s := resetShell(t)
	s.rawConsumer("g", "worker", subscribed("orders")).beat()
	g := s.stable("g", 1)
	r := s.run("groups", "reset", "g", "--all-topics", "--to-earliest", "--execute").fails(exitFailed,
		"group g is in use (1 member)", "stop these, and run this again", "on host 127.0.0.1 (member "+g.Members[0].ID+")", "muster groups members remove g --all")
	same(t, "stdout", r.stdout, "")
	if g := s.describe("g"); *g.Partitions[0].Committed != 4 {
		t.Errorf("the offsets are %+v", g.Partitions)
	}
	r = s.run("groups", "reset", "g", "--all-topics", "--to-earliest")
	says(t, r.ok(), "orders          0        4    0      -4")
	says(t, r.err, "this is a dry run", "--execute will be refused for now:\n", "on host 127.0.0.1")
}

func TestGroupsResetCreatesAGroup(t *testing.T) {
	s := resetShell(t)
	r := s.run("groups", "reset", "fresh", "--topic", "orders:1", "--to-offset", "2")
	r.ok()
	says(t, r.err, `there is no group "fresh"; --execute creates it`)
	s.run("groups", "describe", "fresh").fails(exitFailed, `there is no group "fresh"`)
	s.run("groups", "reset", "fresh", "--topic", "orders:1", "--to-offset", "2", "--execute").ok()
	same(t, "the offsets", s.committed("fresh"), "orders-1=2")
}

func TestGroupsResetRefusesWhatIsNotThere(t *testing.T) {
	s := resetShell(t)
	reset := func(args ...string) *result { return s.run(append([]string{"groups", "reset"}, args...)...) }
	reset("g", "--topic", "nope", "--to-earliest").fails(exitFailed, `there is no topic "nope"`)
	reset("g", "--topic", "orders:2", "--to-earliest").fails(exitFailed, "topic orders has no partition 2; it has 2 partitions")
	reset("nope", "--all-topics", "--to-earliest").fails(exitFailed, `there is no group "nope"`)
}

func TestGroupsDelete(t *testing.T) {
	s := resetShell(t)
	s.member("live", []string{"orders"}, kgo.ClientID("worker"))
	s.stable("live", 1)
	commit(t, s.client(), "h", "orders", 1)
	s.pipe("y\n", "groups", "delete", "g").fails(exitUsage, "add --yes")
	s.run("groups", "delete", "g", "--yes").prints("deleted group g\n")
	r := s.run("groups", "delete", "g", "live", "h", "-y").fails(exitFailed,
		`there is no group "g"`, "group live has 1 member: worker-", " at 127.0.0.1; stop it first")
	same(t, "stdout", r.stdout, "deleted group h\n")
	results := decode[[]cli.Result](s.run("groups", "delete", "live", "h", "-y", "--json").fails(exitFailed))
	assert.True(t, len(results) == 2 && results[0].Error != nil && results[1].Error != nil, "delete --json printed %+v", results)
}

func TestGroupsMembersRemove(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	static, instance := s.rawMember("g", patience, "orders"), "worker-7"
	static.instance = &instance
	static.mustJoin()
	remove := func(args ...string) *result {
		return s.run(append([]string{"groups", "members", "remove"}, args...)...)
	}
	remove("nope", "--all").fails(exitFailed, `there is no group "nope"`)
	remove("g", "--instance-id", "worker-8").fails(exitFailed, `group g has no static member "worker-8"`)
	remove("g", "--member", "x").fails(exitFailed, `group g has no member "x"`)
	remove("g", "--instance-id", "worker-7", "--reason", "its host is gone").prints("removed worker-7 from group g\n")
	_, text := s.explained("g", func(x explain.Explanation) bool { return x.State == groupview.Empty && x.RebalanceCount == 2 })
	says(t, text, `worker-7 at 127.0.0.1 was removed by client muster at 127.0.0.1. Reason given: "its host is gone".`, "The group has had no members since then; before, it had 1.")
	remove("g", "--all").prints("")

	dynamic := s.rawMember("g", patience, "orders")
	dynamic.mustJoin()
	removed := decode[[]groups.RemovedMember](remove("g", "--all", "--json"))
	assert.True(t, len(removed) == 1 && removed[0].Member == dynamic.id && removed[0].Error == nil, "remove --json printed %+v", removed)
	same(t, "the members", len(s.describe("g").Members), 0)
}
