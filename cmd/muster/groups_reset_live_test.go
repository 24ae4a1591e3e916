package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

// reads waits until a member has read these records, named partition@offset, in any order,
// and commits what it has read.
func (s *shell) reads(c *kgo.Client, want ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var got []string
	for len(got) < len(want) {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); !errors.Is(err, kerr.UnknownMemberID) { // It says so when it was removed, and joins again.
			assert.Must(s.t, err, "%v are read of %v", got, want)
		}
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, fmt.Sprintf("%d@%d", r.Partition, r.Offset)) })
	}
	slices.Sort(got)
	slices.Sort(want)
	same(s.t, "the records", strings.Join(got, " "), strings.Join(want, " "))
	must(s.t, c.CommitUncommittedOffsets(ctx))
}

func offsets(partition, from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("%d@%d", partition, i))
	}
	return out
}

// resetName finds the name of a reset in what it prints.
func resetName(t *testing.T, r *result) string {
	t.Helper()
	_, name, ok := strings.Cut(r.err, "--undo ")
	assert.True(t, ok, "no name of a reset: %s", r.err)
	return strings.TrimSpace(name)
}

// A member that reads on goes on from where the group is moved to, and only there: with any of
// these assignors, and also if it is removed for that.
func TestGroupsResetMovesAGroupThatRuns(t *testing.T) {
	for name, c := range map[string]struct {
		balancer kgo.GroupBalancer
		flags    string
	}{
		"range": {balancer: kgo.RangeBalancer()}, "sticky": {balancer: kgo.StickyBalancer()},
		"cooperative": {balancer: kgo.CooperativeStickyBalancer()}, "now": {balancer: kgo.CooperativeStickyBalancer(), flags: "--now"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newGroupShell(t)
			s.run("topics", "create", "orders", "-p", "2").ok()
			s.pipe(recordLines(0, 10, 0)+recordLines(1, 4, 0), "produce", "orders", "--json-lines").ok()
			m := s.member("g", []string{"orders"}, kgo.Balancers(c.balancer), kgo.ClientID("worker"))
			s.reads(m, append(offsets(0, 0, 10), offsets(1, 0, 4)...)...)
			same(t, "the offsets", s.committed("g"), "orders-0=10 orders-1=4")

			preview := s.run("groups", "reset", "g", "--topic", "orders:0", "--to-offset", "7")
			preview.ok()
			says(t, preview.err, "this is a dry run", "group g is in use: its members rebalance")

			polled := make(chan struct{})
			go func() { // Clients rejoin while they poll.
				defer close(polled)
				s.reads(m, offsets(0, 7, 10)...)
			}()
			r := s.run(append([]string{"groups", "reset", "g", "--topic", "orders:0", "--to-offset", "7", "--execute"}, strings.Fields(c.flags)...)...)
			r.ok()
			says(t, r.err, "moved the committed offsets of group g in 1 partition, and its members with them")
			<-polled
			same(t, "the offsets", s.committed("g"), "orders-0=10 orders-1=4")
			first := resetName(t, r)

			r = s.run("groups", "reset", "g", "--undo", first)
			says(t, r.ok(), "orders          0       10   10")
			s.pipe(recordLines(0, 2, 0)+recordLines(1, 1, 0), "produce", "orders", "--json-lines").ok()
			s.reads(m, "0@10", "0@11", "1@4")
			s.run("groups", "reset", "g", "--undo", "rnone").fails(exitFailed, "the journal knows of no reset rnone of group g")

			polled = make(chan struct{})
			go func() {
				defer close(polled)
				s.reads(m, "0@10", "0@11")
			}()
			r = s.run("groups", "reset", "g", "--undo", first, "--execute")
			r.ok()
			<-polled
			r = s.run("groups", "history", "g", "--since", "1h", "--all")
			says(t, r.ok(), "reset "+first+" by client muster", "reset "+first+" begun by client muster")
		})
	}
}

// Who is stuck does not rejoin: the reset waits, and another one with --now takes its place.
func TestGroupsResetOfMembersThatAreStuck(t *testing.T) {
	s := resetShell(t)
	stuck := s.rawMember("g", patience, "orders")
	stuck.mustJoin()
	s.stable("g", 1)
	first := make(chan *result)
	go func() {
		first <- s.run("groups", "reset", "g", "--all-topics", "--to-earliest", "--execute")
	}()
	eventually(t, func() error {
		if r := s.run("groups", "history", "g", "--all"); !strings.Contains(r.stdout, "begun by client muster") {
			return fmt.Errorf("the journal says %s%s", r.stdout, r.err)
		}
		return nil
	})
	s.run("groups", "reset", "g", "--all-topics", "--to-latest", "--execute").fails(exitFailed, "nothing was moved: another reset is under way: r")
	s.run("groups", "reset", "g", "--all-topics", "--to-offset", "2", "--execute", "--now").ok()
	select {
	case r := <-first:
		r.fails(exitFailed, "nothing was moved: another reset took its place: r")
	case <-time.After(patience):
		t.Error("the first reset is not answered")
	}
	same(t, "the offsets", s.committed("g"), "orders-0=2 orders-1=2")
	r := s.run("groups", "history", "g")
	_, name, _ := strings.Cut(r.ok(), "reset r")
	name, _, _ = strings.Cut("r"+name, " ")
	s.run("groups", "reset", "g", "--undo", name).fails(exitFailed, "reset "+name+" of group g was not applied, so there is nothing to undo")
}
