package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/journal"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
	"muster/internal/watch/list"
)

func as(name, password string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(name, password) }
}

// fill puts names into a path, and what it must be asked.
func fill(path string) string {
	if path == "/acls/why" {
		path += "?principal=ann&operation=READ&resource=TOPIC&name=orders"
	}
	return strings.NewReplacer("{group}", "billing", "{topic}", "orders", "{user}", "ann").Replace(path)
}

// Every route of the table wants a login where there are users.
func TestEveryRouteWantsALogin(t *testing.T) {
	f := newFake(t)
	f.users = map[string]string{"ann": "anns", "bob": "busy"}
	s := serve(t, f)
	for i := range routes {
		path := Prefix + fill(routes[i].path)
		if routes[i].open {
			continue
		}
		resp, _ := s.do(http.MethodGet, path)
		if resp.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
		s.fails(path, http.StatusUnauthorized, as("ann", "wrong"))
		s.fails(path, http.StatusServiceUnavailable, as("bob", "x"))
		if resp, body := s.do(http.MethodGet, path, as("ann", "anns")); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}

// Every right that the table names is asked for, and nothing is told before.
func TestEveryRouteChecksTheRightsThatItNames(t *testing.T) {
	f := newFake(t)
	s := serve(t, f)
	for i := range routes {
		for _, n := range routes[i].needs {
			if n.listed {
				continue
			}
			name := auth.ClusterName
			if n.kind != auth.Cluster {
				name = fill("{" + n.param + "}")
			}
			lacks := right(auth.Request{Operation: n.operation, Type: n.kind, Name: name})
			f.denies, f.denied = map[string]bool{lacks: true}, nil
			p := s.fails(Prefix+fill(routes[i].path), http.StatusForbidden)
			if a := p.MissingACL; a == nil || a.Operation+" "+a.ResourceType+" "+a.ResourceName != lacks || a.Principal != "User:ANONYMOUS" || a.Command == "" {
				t.Errorf("%s: %+v", routes[i].path, p)
			}
			if !slices.Equal(f.denied, []string{lacks}) {
				t.Errorf("%s: noted are %v", routes[i].path, f.denied)
			}
		}
	}
}

func TestListsLeaveOutWhatTheCallerMayNotSee(t *testing.T) {
	f := withJournal(t)
	s := serve(t, f)
	f.denies = map[string]bool{"DESCRIBE CLUSTER kafka-cluster": true, "DESCRIBE GROUP billing": true, "DESCRIBE TOPIC payments": true}
	l := read[GroupList](s, "/groups")
	assert.True(t, rowNames(l.Groups) == "=SUM(A1) shipping" && *l.Matched == 2 && l.Total == nil && len(l.Groups[0].Topics) == 0, "the groups are %+v", l)
	if o := read[Overview](s, "/overview"); o.Groups != nil || o.Needing != 1 || len(o.Worst) != 1 || o.Topics != 1 {
		t.Errorf("the overview is %+v", o)
	}
	if j := read[Journal](s, "/journal"); len(j.Entries) != 1 || j.Entries[0].Group != "gone" {
		t.Errorf("the journal is %+v", j)
	}
	if l := read[TopicList](s, "/topics"); len(l.Topics) != 1 || l.Topics[0].Groups != 1 {
		t.Errorf("the topics are %+v", l)
	}
	if d := read[TopicDetail](s, "/topics/orders"); len(d.Groups) != 1 || d.Groups[0].Name != "shipping" {
		t.Errorf("the groups of the topic are %+v", d.Groups)
	}
	s.fails(Prefix+"/groups?topic=payments", http.StatusForbidden)
	assert.Equal(t, len(f.denied), 1, "noted are %v", f.denied)
}

func TestTopicsThatTheCallerMayNotSeeAreHiddenInAGroup(t *testing.T) {
	f := newFake(t)
	s := serve(t, f)
	f.denies = map[string]bool{"DESCRIBE TOPIC orders": true, "DESCRIBE_CONFIGS TOPIC orders": true}
	g := read[GroupDetail](s, "/groups/billing")
	if len(g.Partitions) != 0 || g.HiddenTopics != 1 || g.TotalLag != nil || g.Watched != nil || len(g.Members[0].Topics) != 0 || len(g.Members[0].Assigned) != 0 {
		t.Errorf("the group is %+v", g)
	}
	if h := read[History](s, "/groups/billing/history"); len(h.Points) != 0 || h.Hidden != 1 {
		t.Errorf("its history is %+v", h)
	}
	s.fails(Prefix+"/groups/billing/explain", http.StatusForbidden)
	s.fails(Prefix+"/groups/billing/history?topic=orders&partition=0", http.StatusForbidden)
	f.denies = map[string]bool{"DESCRIBE_CONFIGS TOPIC orders": true}
	if d := read[TopicDetail](s, "/topics/orders"); d.Settings != nil {
		t.Errorf("the settings are %+v", d.Settings)
	}
	if g := read[GroupDetail](s, "/groups/billing"); g.Watched == nil || g.HiddenTopics != 0 {
		t.Errorf("who may see all is shown %+v", g)
	}
	if h := read[History](s, "/groups/billing/history"); len(h.Points) == 0 || h.Hidden != 0 {
		t.Errorf("who may see all is shown %+v", h)
	}
}

// Who may see some topics of a group sees all of these, and no sums with others.
func TestTopicsThatTheCallerMaySeeAreShownWithoutSums(t *testing.T) {
	f := newFake(t)
	f.groups["billing"].Committed[groupview.TopicPartition{Topic: "payments"}] = groupview.Commit{Offset: 1}
	f.snapshot.Groups = list.Build([]list.GroupRow{{Name: "billing", Topics: []string{"orders", "payments"}}})
	f.denies = map[string]bool{"DESCRIBE TOPIC payments": true}
	s := serve(t, f)
	g := read[GroupDetail](s, "/groups/billing")
	if len(g.Partitions) != 2 || g.Partitions[0].LagSeconds == nil || g.HiddenTopics != 1 || g.TotalLag != nil || g.Watched != nil {
		t.Errorf("the group is %+v", g)
	}
	if h := read[History](s, "/groups/billing/history?topic=orders&partition=0"); len(h.Points) != 0 || h.Hidden != 1 || len(h.Positions) == 0 {
		t.Errorf("its history is %+v", h)
	}
}

// The right to a group is none to know what it reads, nor what it has read.
func TestTheJournalDoesNotNameTopicsThatTheCallerMayNotSee(t *testing.T) {
	f := newFake(t)
	f.entries = []explain.Entry{
		entry(t, journal.Entry{Time: now.Add(-2 * time.Minute), Group: "billing", Kind: journal.KindOffsetsDeleted, By: &journal.Who{ClientID: "ann"}, PartitionN: 1, Topics: []journal.TopicCount{{Topic: "payments", Partitions: 1}}, TopicN: 1}),
		entry(t, journal.Entry{
			Time: now.Add(-time.Minute), Started: now.Add(-time.Minute), Group: "billing", Kind: journal.KindSettled, After: 1, Moves: []journal.Move{{Topic: "payments"}}, MoveN: 1, PartitionN: 1,
			Triggers: []journal.Trigger{{Kind: journal.TriggerLeader, Reason: "need to revoke [payments-0]"}}, TriggerN: 1,
		}),
		entry(t, journal.Entry{Time: now.Add(-time.Second), Group: "gone", Kind: journal.KindDeleted, Cause: journal.CauseRequest, PartitionN: 1, Topics: []journal.TopicCount{{Topic: "payments", Partitions: 1}}, TopicN: 1}),
	}
	s := serve(t, f)
	for _, path := range []string{"/journal", "/journal?format=csv", "/groups/billing/journal", "/groups/gone/journal", "/groups/billing/explain", "/groups/gone/explain"} {
		f.denies = map[string]bool{}
		if resp, body := s.do(http.MethodGet, Prefix+path); resp.StatusCode != http.StatusOK || !strings.Contains(body, "payments") || strings.Contains(body, explain.HiddenTopic) {
			t.Errorf("%s, to who may: %d %s", path, resp.StatusCode, body)
		}
		f.denies = map[string]bool{"DESCRIBE TOPIC payments": true}
		if resp, body := s.do(http.MethodGet, Prefix+path); resp.StatusCode != http.StatusOK || strings.Contains(body, "payments") || !strings.Contains(body, explain.HiddenTopic) {
			t.Errorf("%s, to who may not: %d %s", path, resp.StatusCode, body)
		}
	}
}

// Whose a transaction is that holds a group back is for those who may describe it.
func TestTransactionalIDsAreNamedToThoseWhoMayDescribeThem(t *testing.T) {
	f := newFake(t)
	f.held = map[groupview.TopicPartition]explain.HeldBack{{Topic: "orders"}: {LastStableOffset: 10, TransactionalID: "month-end", ProducerID: 4711, Open: time.Minute}}
	s := serve(t, f)
	for _, denied := range []bool{false, true} {
		f.denies = map[string]bool{"DESCRIBE TRANSACTIONAL_ID month-end": denied}
		_, body := s.do(http.MethodGet, Prefix+"/groups/billing/explain")
		if !strings.Contains(body, "open-transaction") || strings.Contains(body, "month-end") == denied || strings.Contains(body, "4711") || strings.Contains(body, "that you may not describe") != denied {
			t.Errorf("denied %t: it explains %s", denied, body)
		}
	}
	assert.True(t, len(f.denied) == 0, "noted are %v", f.denied)
}
