package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/groups"
	"muster/internal/assert"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
)

func TestGroupsListOfNoGroups(t *testing.T) {
	s := newGroupShell(t)
	r := s.run("groups", "list")
	same(t, "stdout", r.ok(), "")
	same(t, "stderr", r.err, "there are no groups yet; a consumer makes one when it joins or commits\n")
	s.run("groups", "list", "--json").prints("[]\n")
	r = s.run("groups", "list", "x", "--state", "Stable", "--only-with-lag")
	same(t, "stderr", r.err, "no group matches \"x\" and is Stable and has lag\n")
}

// threeGroups makes three groups: one that is at the end and lives, one with a
// lag of 5, and one that never was more than an offset.
func threeGroups(t *testing.T) *shell {
	t.Helper()
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.pipe(recordLines(0, 3, 0)+recordLines(1, 4, 0), "produce", "orders", "--json-lines").ok()
	audit := s.member("audit", []string{"orders"}, kgo.ClientID("audit-1"))
	s.take(audit, 7)
	billing := s.member("billing", []string{"orders"})
	s.take(billing, 7)
	billing.Close()
	s.run("groups", "reset", "billing", "--all-topics", "--to-earliest", "--execute").ok()
	s.run("groups", "reset", "billing", "--topic", "orders:1", "--shift-by", "2", "--execute").ok()
	s.run("groups", "reset", "simple", "--topic", "orders:0", "--to-latest", "--execute").ok()
	s.stable("audit", 1)
	return s
}

func TestGroupsList(t *testing.T) {
	s := threeGroups(t)
	s.run("groups", "list").prints(`GROUP    TYPE     STATE   PROTOCOL        MEMBERS  TOPICS  TOTAL LAG  UNCOMMITTED
audit    classic  Stable  consumer/range        1       1          0            0
billing  classic  Empty   consumer              0       1          5            0
simple   classic  Empty   -                     0       1          0            0
`)
	groups := decode[[]groups.Listed](s.run("groups", "list", "--json"))
	g := groups[1]
	if g.Name != "billing" || g.State != "Empty" || g.ProtocolType != "consumer" || *g.Members != 0 || *g.TotalLag != 5 || g.Error != nil || strings.Join(g.Topics, " ") != "orders" {
		t.Errorf("list --json has %+v", g)
	}
}

// Members of a consumer group are shown with where they are, also while it reconciles.
func TestGroupsOfTheConsumerProtocol(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "4").ok()
	s.pipe(recordLines(0, 3, 0), "produce", "orders", "--json-lines").ok()
	seen := make(chan struct{}) // Until then the first member gives nothing back.
	defer close(seen)
	first := s.member("next", []string{"orders"}, kgo.ServerSideBalancer(), kgo.ClientID("first"),
		kgo.OnPartitionsRevoked(func(context.Context, *kgo.Client, map[string][]int32) { <-seen }))
	s.take(first, 3)
	says(t, s.run("groups", "list").ok(), "next   consumer  Stable  consumer/range        1       1")
	out := s.run("groups", "describe", "next").ok()
	says(t, out, "Type:         consumer\n", "State:        Stable\n", "Epoch:        2, target assignment of epoch 2\n", "orders:0-3", "the same")

	s.member("next", []string{"orders"}, kgo.ServerSideBalancer(), kgo.ClientID("second"))
	eventually(t, func() error { return wantState(s.describe("next"), groupview.Reconciling) })
	g := s.describe("next")
	if len(g.Members) != 2 || g.Members[0].Epoch == nil || g.Members[0].Assigned == nil || g.TotalLag == nil {
		t.Errorf("while it reconciles the group is %+v", g)
	}
	says(t, s.run("groups", "explain", "next").ok(), "Group next is ")
}

func TestGroupsListFilters(t *testing.T) {
	s := threeGroups(t)
	names := func(args ...string) string {
		var out []string
		for _, g := range decode[[]groups.Listed](s.run(append([]string{"groups", "list", "--json"}, args...)...)) {
			out = append(out, g.Name)
		}
		return strings.Join(out, " ")
	}
	same(t, "all", names(), "audit billing simple")
	same(t, "a regex", names("ill|imp"), "billing simple")
	same(t, "--filter", names("--filter", "^a"), "audit")
	same(t, "--state", names("--state", "stable"), "audit")
	same(t, "two states", names("--state", "Stable,Empty"), "audit billing simple")
	same(t, "--only-with-lag", names("--only-with-lag"), "billing")
	same(t, "--sort lag", names("--sort", "lag"), "billing audit simple")
	same(t, "--sort members", names("--sort", "members"), "audit billing simple")
	same(t, "--limit", names("--limit", "1"), "audit")
	same(t, "--sort lag --limit", names("--sort", "lag", "-n", "1"), "billing")
	r := s.run("groups", "list", "-n", "2")
	r.ok()
	same(t, "stderr", r.err, "there are more groups; --limit ended the list\n")
	same(t, "stderr of a limit that fits", s.run("groups", "list", "-n", "3").err, "")
}

func TestGroupsListAsksInBatches(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders").ok()
	s.pipe("a\n", "produce", "orders").ok()
	client := s.client()
	for i := range groups.Batch + 10 {
		commit(t, client, groupName(i), "orders", 0)
	}
	listed := decode[[]groups.Listed](s.run("groups", "list", "--json"))
	same(t, "the number of groups", len(listed), groups.Batch+10)
	for i, g := range listed {
		assert.MustTrue(t, g.Name == groupName(i) && *g.TotalLag == 1, "group %d is %+v", i, g)
	}
}

func TestGroupsDescribe(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "3").ok()
	s.pipe(recordLines(0, 5, 100*time.Second)+recordLines(1, 2, 0), "produce", "orders", "--json-lines").ok()
	c := s.member("billing", []string{"orders"}, kgo.ClientID("billing-1"))
	s.take(c, 7)
	s.pipe(recordLines(0, 4, 90*time.Second)+recordLines(2, 1, 50*time.Hour), "produce", "orders", "--json-lines").ok()
	s.member("billing", []string{"orders"}, kgo.ClientID("billing-2"))
	g := s.stable("billing", 2)

	if g.ProtocolType != "consumer" || g.Assignor != "range" || *g.TotalLag != 4 || g.Uncommitted != 1 || g.Coordinator.Broker != 1 || g.Coordinator.Address != s.broker {
		t.Errorf("the group is %+v", g)
	}
	owners := map[string]string{}
	for _, m := range g.Members {
		owners[m.ID] = m.ClientID
		assert.True(t, m.Host == "127.0.0.1" && m.Instance == nil && strings.Join(m.Topics, " ") == "orders" && len(m.Assigned) == 1, "a member is %+v", m)
	}
	p := g.Partitions
	if len(p) != 3 || *p[0].Committed != 5 || *p[0].LogEnd != 9 || *p[0].Lag != 4 || *p[1].Committed != 2 || *p[1].Lag != 0 || p[2].Committed != nil || *p[2].LogEnd != 1 || p[2].Lag != nil || p[2].LagSeconds != nil {
		t.Errorf("the partitions are %+v", p)
	}
	if seconds := *p[0].LagSeconds; seconds < 90 || seconds > 90+patience.Seconds() {
		t.Errorf("partition 0 lags by %f s", seconds)
	}
	same(t, "the lag in time of partition 1", *p[1].LagSeconds, 0)
	for _, q := range p {
		if q.Owner == nil || owners[*q.Owner] == "" {
			t.Errorf("%s is owned by %v", q.Name(), q.Owner)
		}
	}

	out := s.run("groups", "describe", "billing").ok()
	says(t, out, "Group:        billing\n", "State:        Stable\n", "Protocol:     consumer/range\n", "Members:      2\n", "Total lag:    4\n",
		"TOPIC   PARTITION  COMMITTED  END  LAG  LAG TIME  OWNER\n", "orders          0          5    9    4     1m", "orders          1          2    2    0        0s  billing-",
		"orders          2          -    1    -         -  billing-", "1 partition has no committed offset")
	out = s.run("groups", "describe", "billing", "--only-with-lag").ok()
	says(t, out, "orders          0 ", "1 partition has no committed offset")
	assert.True(t, !strings.Contains(out, "orders          1 ") && !strings.Contains(out, "orders          2 "), "--only-with-lag prints\n%s", out)
}

// A changelog topic is assigned and read, and no one ever commits it: Kafka's own
// tool shows no lag of it either.
func TestPartitionsWithoutACommitAreNoLag(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "changelog", "-p", "2").ok()
	s.pipe(recordLines(0, 3, 50*time.Hour)+recordLines(1, 3, 0), "produce", "changelog", "--json-lines").ok()
	s.member("table", []string{"changelog"})
	g := s.stable("table", 1)
	assert.True(t, *g.TotalLag == 0 && g.Uncommitted == 2, "the group is %+v", g)
	says(t, s.run("groups", "list").ok(), "table  classic  Stable  consumer/range        1       1          0            2\n")
	same(t, "list --only-with-lag", s.run("groups", "list", "--only-with-lag").ok(), "")
	out := s.run("groups", "describe", "table", "--only-with-lag").ok()
	says(t, out, "No partition has lag.", "2 partitions have no committed offset")
	says(t, oneLine(s.run("groups", "explain", "table").ok()), "Its total lag is 0.", "Nothing looks odd now.")
	listed := decode[[]groups.Listed](s.run("groups", "list", "--json"))[0]
	assert.True(t, *listed.TotalLag == 0 && *listed.Uncommitted == 2, "list --json has %+v", listed)
}

func TestGroupsDescribeOfSeveralAndUnknownGroups(t *testing.T) {
	s := threeGroups(t)
	r := s.run("groups", "describe", "simple", "nope", "billing", "--json").fails(exitFailed, `there is no group "nope"`)
	groups := decode[[]groupview.Group](r)
	if len(groups) != 2 || groups[0].Name != "simple" || groups[1].Name != "billing" || len(groups[0].Partitions) != 1 || len(groups[1].Partitions) != 2 {
		t.Errorf("describe --json printed %+v", groups)
	}
	says(t, s.run("groups", "describe", "simple").ok(), "Protocol:     -\n", "Members:      0\n")
	says(t, s.run("groups", "describe", "simple", "--only-with-lag").ok(), "No partition has lag.")
}

func TestGroupsDescribeTellsTheLagDuringARebalance(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.pipe(recordLines(0, 3, 0), "produce", "orders", "--json-lines").ok()
	commit(t, s.client(), "billing", "orders", 1)
	s.rawMember("billing", patience, "orders").mustJoin()
	second := s.rawMember("billing", patience, "orders")
	done := background(t, second.join) // It waits for the first, which does not come.
	defer done()
	eventually(t, func() error { return wantState(s.describe("billing"), groupview.Preparing) })

	g := s.describe("billing")
	if *g.TotalLag != 2 || len(g.Members) != 2 || g.Members[0].Assigned != nil || g.Partitions[0].Owner != nil || *g.Partitions[0].Lag != 2 {
		t.Errorf("during the rebalance the group is %+v", g)
	}
	says(t, s.run("groups", "list").ok(), "billing  classic  PreparingRebalance  consumer        2       1          2            1\n")
	says(t, s.run("groups", "describe", "billing").ok(), "A rebalance is under way")
	_, text := s.explained("billing", func(x explain.Explanation) bool { return x.UnderWay != nil })
	says(t, text, "Group billing is PreparingRebalance: it waits for its 2 members to join. Its total lag is 2.", "A rebalance is under way since", "raw-", "at 127.0.0.1 joined.", " it waited for raw-", " to join.")
}
