package main

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/journal"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
)

func TestGroupsExplainWithoutAJournal(t *testing.T) {
	s := newGroupShell(t)
	s.run("groups", "explain", "nope").fails(exitFailed, `there is no group "nope"`)
	s.run("topics", "create", "orders").ok()
	commit(t, s.client(), "simple", "orders", 0)
	says(t, oneLine(s.run("groups", "explain", "simple").ok()),
		"Group simple is Empty: it has no members. Its total lag is 0.", "The broker has no group journal (topic __group_journal)", "Nothing looks odd now.")
	if x := decode[explain.Explanation](s.run("groups", "explain", "simple", "--json")); x.Journal || x.State != groupview.Empty || len(x.Findings) != 0 {
		t.Errorf("explain --json printed %+v", x)
	}
	s.run("groups", "history", "simple").fails(exitFailed, "the broker has no group journal")
}

func TestGroupsExplainAJoinAndALeave(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "4").ok()
	s.member("billing", []string{"orders"}, kgo.ClientID("one"))
	s.stable("billing", 1)
	two := s.member("billing", []string{"orders"}, kgo.ClientID("two"))
	s.stable("billing", 2)
	x, text := s.explained("billing", func(x explain.Explanation) bool { return x.RebalanceCount == 2 })
	says(t, text, "Group billing is Stable: 4 partitions are assigned to 2 members by the range assignor. Its total lag is 0.",
		"It rebalanced 2 times in the last hour:", "(generation 1)", "(generation 2)",
		"at 127.0.0.1 joined the empty group.", "The group now has 1 member; 4 partitions are assigned.",
		"1 member became 2; 2 of 4 partitions changed hands.", "Nothing looks odd now.")
	r := x.Rebalances[0]
	if r.Generation != 2 || r.MembersBefore != 1 || r.MembersAfter != 2 || r.PartitionsMoved != 2 || r.Partitions != 4 || r.Settled.Before(r.Started) || len(r.Entry) == 0 {
		t.Errorf("the rebalance is %+v", r)
	}

	two.Close()
	x, text = s.explained("billing", func(x explain.Explanation) bool { return x.RebalanceCount == 3 && x.Members == 1 })
	says(t, text, "It rebalanced 3 times in the last hour:", `at 127.0.0.1 left. Reason given: "client leaving group per normal operation".`, "2 members became 1; 2 of 4 partitions changed hands.")
	says(t, x.Rebalances[0].Text[0], "two-")
	limited := oneLine(s.run("groups", "explain", "billing", "--limit", "1").ok())
	says(t, limited, "It rebalanced 3 times in the last hour. The latest 1:")
}

func TestGroupsExplainAMissedHeartbeat(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.member("billing", []string{"orders"})
	s.stable("billing", 1)
	s.rawMember("billing", 3*time.Second, "orders").mustJoin() // And then it is silent.
	x, text := s.explained("billing", func(x explain.Explanation) bool { return x.RebalanceCount == 3 && x.State == groupview.Stable })
	says(t, text, "at 127.0.0.1 sent no heartbeat for 3s, its session timeout, and was removed.", "2 members became 1;",
		"What is odd: 1. In the last hour, 1 member missed its heartbeats and was removed: raw at 127.0.0.1.",
		"What to do: Look there for a crash", "raise its session.timeout.ms (now 3s)")
	assert.True(t, found(x, "heartbeats-missed"), "the findings are %+v", x.Findings)
}

func TestGroupsExplainIdleMembers(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	for range 3 {
		s.member("billing", []string{"orders"}, kgo.ClientID("worker"))
	}
	s.stable("billing", 3)
	x, text := s.explained("billing", func(x explain.Explanation) bool { return found(x, "idle-members") })
	says(t, text, "The group has 3 members for 2 partitions of orders, so 1 member has nothing to read: worker-",
		"What to do: Run at most 2 members, or add partitions: muster topics alter orders --partitions 3.")
	same(t, "the number of members", x.Members, 3)
}

func TestGroupsExplainDifferentSubscriptions(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.run("topics", "create", "users", "-p", "2").ok()
	s.member("shared", []string{"orders"}, kgo.ClientID("billing"))
	s.member("shared", []string{"users"}, kgo.ClientID("mailer"))
	s.stable("shared", 2)
	_, text := s.explained("shared", func(x explain.Explanation) bool { return found(x, "different-subscriptions") })
	says(t, text, "Members subscribe to different topics: billing-", " at 127.0.0.1 to orders; mailer-", " at 127.0.0.1 to users.", "give each a group.id of its own")
}

func TestGroupsExplainWhatTheOffsetsShow(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.pipe(recordLines(0, 2, 50*time.Hour)+recordLines(1, 2, 0), "produce", "orders", "--json-lines").ok()
	s.run("groups", "reset", "g", "--topic", "orders", "--to-earliest", "--execute").ok()
	s.run("groups", "reset", "g", "--topic", "orders:1", "--to-latest", "--execute").ok()
	says(t, oneLine(s.run("groups", "explain", "g").ok()), "The group has no members, and 2 records wait to be read.", "muster groups delete g")

	s.rawMember("g", patience, "orders", "missing").mustJoin()
	x, text := s.explained("g", func(x explain.Explanation) bool { return x.State == groupview.Stable })
	says(t, text, "orders-0 stands out: its next record, offset 0, is 2d2h old, while half of the partitions are at most 0s behind. Its owner is raw-",
		"muster groups reset g --topic orders:0 --shift-by 1", "Members subscribe to missing, which does not exist.")
	assert.True(t, found(x, "stuck-partition") && found(x, "missing-topic"), "the findings are %+v", x.Findings)
}

func TestGroupsExplainLostRecords(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders").ok()
	s.pipe(recordLines(0, 9, 50*time.Hour), "produce", "orders", "--json-lines").ok()
	client := s.client()
	commit(t, client, "below", "orders", 1)
	commit(t, client, "beyond", "orders", 20)
	req := kmsg.NewPtrDeleteRecordsRequest()
	topic, partition := kmsg.NewDeleteRecordsRequestTopic(), kmsg.NewDeleteRecordsRequestTopicPartition()
	partition.Offset = 5
	topic.Topic, topic.Partitions = "orders", append(topic.Partitions, partition)
	req.Topics = append(req.Topics, topic)
	if _, err := req.RequestWith(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	says(t, oneLine(s.run("groups", "explain", "below").ok()),
		"Its total lag is 4.", "Records were deleted before the group read them: 4 offsets in orders-0 (committed 1, log start 5). They are not in the lag.")
	says(t, s.run("groups", "describe", "below").ok(), "orders          0          1    9    4      2d2h  -\n", "1 partition has a committed offset below the log start")
	says(t, oneLine(s.run("groups", "explain", "beyond").ok()), "Its total lag is 0.", "orders-0 (committed 20, end 9)")
}

func TestGroupsExplainADeletedGroup(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.rawMember("g", patience, "orders").mustJoin()
	s.run("groups", "members", "remove", "g", "--all").ok()
	s.run("groups", "delete", "g", "-y").ok()
	x, text := s.explained("g", func(x explain.Explanation) bool { return x.RebalanceCount == 2 && x.EventCount == 1 })
	same(t, "the state", x.State, groupview.Dead)
	says(t, text, "Group g does not exist any more.", "Client muster at 127.0.0.1 deleted the group.", `at 127.0.0.1 was removed by client muster at 127.0.0.1. Reason given: "removed with muster groups members remove".`)
}

// beat sends a heartbeat and returns the error that it is answered with.
func (m *rawMember) beat(t *testing.T) error {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = m.group, m.id, m.instance, m.gen
	resp, err := req.RequestWith(t.Context(), m.client)
	must(t, err)
	return kerr.ErrorForCode(resp.ErrorCode)
}

func TestGroupsExplainTwoProcessesWithOneInstanceID(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.run("topics", "create", "users", "-p", "2").ok()
	instance := "worker-7"
	one, two := s.rawMember("g", patience, "orders"), s.rawMember("g", patience, "orders", "users")
	one.instance, two.instance = &instance, &instance
	one.mustJoin()
	two.mustJoin()
	for range 2 {
		assert.MustErrorIs(t, one.beat(t), kerr.FencedInstanceID, "the first process is told")
	}
	x, text := s.explained("g", func(x explain.Explanation) bool {
		return found(x, "instance-id-taken-twice") && found(x, "subscription-not-taken-up")
	})
	says(t, text, "What else happened:", "Static member worker-7-", " was fenced: it still sent Heartbeat after worker-7-",
		"Static member worker-7 at 127.0.0.1 restarted, and came back subscribed to users as well.",
		"Two processes have the group.instance.id worker-7, or had for a while:",
		"By Kafka's rule a static member takes its old place without a rebalance, so nobody has acted on that")
	same(t, "the number of events", x.EventCount, 2)
	says(t, s.history(4, "g")[3], " fenced             1 ", "fenced: worker-7-", " sent Heartbeat, but worker-7-", " has its place")

	s.run("groups", "members", "remove", "g", "--instance-id", instance).ok()
	two.id = ""
	two.mustJoin()
	x, _ = s.explained("g", func(x explain.Explanation) bool { return x.RebalanceCount == 3 })
	assert.False(t, found(x, "subscription-not-taken-up"), "a rebalance took it up, but there is %+v", x.Findings)
}

func TestGroupsExplainWhatHappenedToOffsets(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.run("topics", "create", "users", "-p", "1").ok()
	s.pipe(recordLines(0, 3, 0)+recordLines(1, 3, 0), "produce", "orders", "--json-lines").ok()
	s.rawMember("g", patience, "orders").mustJoin()
	s.run("groups", "members", "remove", "g", "--all").ok()
	s.run("groups", "reset", "g", "--topic", "orders", "--to-latest", "--execute").ok()
	s.run("groups", "reset", "g", "--topic", "orders", "--to-earliest", "--execute").ok()
	s.run("groups", "reset", "g", "--topic", "users", "--to-latest", "--execute").ok()
	s.run("topics", "delete", "users", "-y").ok()
	x, text := s.explained("g", func(x explain.Explanation) bool { return x.EventCount == 4 })
	says(t, text, "What else happened (3 of 4):", "The committed offsets of 1 partition of users are gone with their topics.",
		"Client muster at 127.0.0.1, which is not a member, set the committed offsets of 2 partitions of orders while the group was empty: 2 back, so that records are read again.",
		"Client muster at 127.0.0.1, which is not a member, set the committed offsets of 1 partition of users while the group was empty.")
	same(t, "the latest event", x.Events[0].Kind, journal.KindOffsetsDeleted)
	lines := s.history(7, "g")
	says(t, lines[4], " offsets ", "reset r", " by client muster at 127.0.0.1; orders: 2 partitions, 2 back")
	says(t, lines[6], " offsets ", "deleted with its topic; users: 1 partition")
	says(t, oneLine(s.run("groups", "explain", "g", "--limit", "1").ok()), "What else happened (1 of 4):")
}

func TestGroupsExplainARestartOfAStaticMember(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	instance := "worker-7"
	for range 4 {
		m := s.rawMember("g", patience, "orders")
		m.instance = &instance
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		must(t, m.join(ctx))
		cancel()
	}
	x, text := s.explained("g", func(x explain.Explanation) bool { return found(x, "instance-id-taken-twice") })
	same(t, "the number of rebalances", x.RebalanceCount, 1)
	says(t, text, "Static members restarted 3 times without a rebalance: worker-7 at 127.0.0.1 (3 times).", "Static member worker-7 was replaced 3 times")
}
