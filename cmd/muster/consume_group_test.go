package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

// running is a command in the background, with the lines that it writes.
type running struct {
	t              *testing.T
	args           []string
	stdout, stderr chan string
	interrupt      context.CancelFunc
	code           chan int
}

// background runs a command until it is stopped.
func (s *shell) background(args ...string) *running {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	r := &running{s.t, args, make(chan string, 1000), make(chan string, 1000), cancel, make(chan int, 1)}
	s.t.Cleanup(cancel)
	outReader, out := io.Pipe()
	errReader, err := io.Pipe()
	for from, to := range map[io.Reader]chan string{outReader: r.stdout, errReader: r.stderr} {
		go func() {
			defer close(to)
			for lines := bufio.NewScanner(from); lines.Scan(); {
				to <- lines.Text()
			}
		}()
	}
	go func() {
		r.code <- run(ctx, s.args(args), strings.NewReader(""), out, err)
		out.Close()
		err.Close()
	}()
	return r
}

// line waits for the next line of a stream.
func (r *running) line(stream chan string) string {
	r.t.Helper()
	select {
	case line, ok := <-stream:
		assert.MustTrue(r.t, ok, "%v has ended", r.args)
		return line
	case <-time.After(patience):
		r.t.Fatalf("%v says nothing", r.args)
	}
	return ""
}

// lines waits for so many lines of the output, and sorts them.
func (r *running) lines(n int) string {
	r.t.Helper()
	var out []string
	for range n {
		out = append(out, r.line(r.stdout))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// ends waits for the end, and returns what else there was on stderr.
func (r *running) ends(code int) string {
	r.t.Helper()
	select {
	case got := <-r.code:
		same(r.t, "the exit code", got, code)
	case <-time.After(patience):
		r.t.Fatalf("%v does not end", r.args)
	}
	for line := range r.stdout {
		r.t.Errorf("%v printed %q, too", r.args, line)
	}
	var rest []string
	for line := range r.stderr {
		rest = append(rest, line)
	}
	return strings.Join(rest, "\n")
}

func (r *running) stop() string {
	r.t.Helper()
	r.interrupt()
	return r.ends(exitOK)
}

// groupTopic is a shell with a topic of two partitions, and three records in each.
func groupTopic(t *testing.T) *shell {
	t.Helper()
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	var lines strings.Builder
	for partition, name := range []string{"a", "b"} {
		for i := range 3 {
			fmt.Fprintf(&lines, "{\"value\":\"%s%d\",\"partition\":%d}\n", name, i, partition)
		}
	}
	s.pipe(lines.String(), "produce", "orders", "--json-lines").ok()
	return s
}

func TestConsumeInAGroupCommitsWhatItPrinted(t *testing.T) {
	s := groupTopic(t)
	r := s.background("consume", "orders", "--group", "g", "--commit")
	same(t, "the assignment", r.line(r.stderr), "muster: assigned orders:0-1")
	same(t, "the records", r.lines(6), "a0 a1 a2 b0 b1 b2")
	s.pipe(`{"value":"a3","partition":0}`, "produce", "orders", "--json-lines").ok()
	same(t, "what arrives", r.lines(1), "a3")
	eventually(t, func() error { // It does not wait for its end to commit.
		if got := s.committed("g"); got != "orders-0=4 orders-1=3" {
			return fmt.Errorf("committed is %s", got)
		}
		return nil
	})
	s.pipe(`{"value":"a4","partition":0}`, "produce", "orders", "--json-lines").ok()
	same(t, "what arrives", r.lines(1), "a4")
	same(t, "stderr in the end", r.stop(), "muster: revoked orders:0-1")
	same(t, "the offsets", s.committed("g"), "orders-0=5 orders-1=3")
	g := s.describe("g")
	if g.State != "Empty" { // It has left, and no one waits for its session to end.
		t.Errorf("the group is %s with %d members", g.State, len(g.Members))
	}
	s.pipe(`{"value":"b3","partition":1}`, "produce", "orders", "--json-lines").ok()
	r = s.background("consume", "orders", "--group", "g", "--count", "1")
	same(t, "what the next one reads", r.lines(1), "b3")
	same(t, "its stderr", r.ends(exitOK), "muster: assigned orders:0-1\nmuster: revoked orders:0-1")
	same(t, "the offsets, without --commit", s.committed("g"), "orders-0=5 orders-1=3")
}

func TestConsumeInAGroupCommitsNoMoreThanItPrinted(t *testing.T) {
	s := newGroupShell(t)
	s.pipe("1\n2\n3\n4\n5\n", "produce", "a").ok()
	r := s.run("consume", "a", "--group", "g", "--commit", "--count", "2")
	same(t, "the records", r.ok(), "1\n2\n")
	same(t, "the offset", s.committed("g"), "a-0=2")
	same(t, "the rest", s.run("consume", "a", "-g", "g", "--commit", "-n", "3").ok(), "3\n4\n5\n")
	same(t, "the offset", s.committed("g"), "a-0=5")
}

func TestConsumeInAGroupSharesPartitions(t *testing.T) {
	s := groupTopic(t)
	one := s.background("consume", "orders", "--group", "g", "--commit", "--format", `%p\n`)
	same(t, "the first assignment", one.line(one.stderr), "muster: assigned orders:0-1")
	one.lines(6)
	two := s.background("consume", "orders", "--group", "g", "--commit", "--format", `%p\n`)
	revoked := one.line(one.stderr)
	says(t, revoked, "muster: revoked orders:")
	moved := strings.TrimPrefix(revoked, "muster: revoked orders:")
	for line := ""; !strings.HasPrefix(line, "muster: assigned orders:"); { // Cooperative: nothing at first.
		line = two.line(two.stderr)
		if strings.HasPrefix(line, "muster: assigned orders:") {
			same(t, "the second's assignment", line, "muster: assigned orders:"+moved)
		}
	}
	s.pipe(recordLines(0, 1, 0)+recordLines(1, 1, 0), "produce", "orders", "--json-lines").ok()
	same(t, "what the second prints", two.lines(1), moved)
	kept := map[string]string{"0": "1", "1": "0"}[moved]
	same(t, "what the first prints", one.lines(1), kept)
	three := s.background("consume", "orders", "--group", "g")
	same(t, "a third has nothing to do", three.line(three.stderr), "muster: assigned nothing: other members of group g have all partitions")
	three.stop()
	same(t, "the end of the second", two.stop(), "muster: revoked orders:"+moved)
	same(t, "the first gets it back", one.line(one.stderr), "muster: assigned orders:"+moved)
	one.stop()
	same(t, "the offsets", s.committed("g"), "orders-0=4 orders-1=4")
}

func TestConsumeInAGroupBeginsWhereFromSays(t *testing.T) {
	s := newGroupShell(t)
	s.pipe("old\n", "produce", "a").ok()
	r := s.background("consume", "a", "--group", "g", "--from", "end", "--count", "1")
	r.line(r.stderr)
	for done := false; !done; { // No one tells when it has asked for the end.
		s.pipe("new\n", "produce", "a").ok()
		select {
		case line := <-r.stdout:
			same(t, "what it prints", line, "new")
			done = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	r.ends(exitOK)
}

// A group of another protocol cannot be joined, and that is no reason to wait.
func TestConsumeInAGroupThatCannotBeJoined(t *testing.T) {
	s := groupTopic(t)
	s.run("consume", "orders", "nope", "--group", "g").fails(exitFailed, `muster: there is no topic "nope"`)
	odd := s.member("odd", []string{"orders"}, kgo.Balancers(oddBalancer{kgo.RangeBalancer()}))
	s.stable("odd", 1)
	s.run("consume", "orders", "--group", "odd").fails(exitFailed, "muster: group odd: ", "INCONSISTENT_GROUP_PROTOCOL")
	odd.Close()
}

// oddBalancer is range under a name that no one knows.
type oddBalancer struct{ kgo.GroupBalancer }

func (oddBalancer) ProtocolName() string { return "odd" }

func TestConsumeRefusesWhatMakesNoSenseWithAGroup(t *testing.T) {
	s := &shell{t: t}
	for line, want := range map[string]string{
		"consume a --commit":              "--commit needs --group",
		"consume a --group=":              "--group is empty",
		"consume a --group g --from 5":    "--from is beginning or end with --group",
		"consume a --group g --from -5":   "muster groups reset g",
		"consume a --group g --from @-1h": "--from is beginning or end with --group",
		"consume a --group g -p 1":        "--partition cannot be used with --group",
		"consume a --group g --count -1":  "cannot be negative",
	} {
		s.run(strings.Fields(line)...).fails(exitUsage, want, "--help' for its usage.")
	}
	says(t, s.run("consume", "--help").ok(), "muster consume orders --group billing --commit")
	s = newGroupShell(t)
	s.run("topics", "create", "orders").ok()
	commit(t, s.client(), "billing", "orders", 0)
	same(t, "--group is completed", (&shell{t: t}).run("__complete", "consume", "-b", s.broker, "orders", "--group", "b").ok(), "billing\n:4\n")
}
