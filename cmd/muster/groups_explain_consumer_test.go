package main

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
)

// rawConsumer speaks the consumer protocol by hand, so that it can keep what it was told
// to give up.
type rawConsumer struct {
	t      testing.TB
	client *kgo.Client
	req    kmsg.ConsumerGroupHeartbeatRequest
}

func (s *shell) rawConsumer(group, member string, join func(*kmsg.ConsumerGroupHeartbeatRequest)) *rawConsumer {
	s.t.Helper()
	c := &rawConsumer{t: s.t, client: s.client(kgo.ClientID(member)), req: kmsg.NewConsumerGroupHeartbeatRequest()}
	c.req.Group, c.req.MemberID, c.req.RebalanceTimeoutMillis = group, member, 60_000
	c.req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	join(&c.req)
	c.beat()
	c.req.RebalanceTimeoutMillis, c.req.SubscribedTopicNames, c.req.SubscribedTopicRegex, c.req.ServerAssignor, c.req.Topics = -1, nil, nil, nil, nil
	return c
}

// beat sends a heartbeat that says nothing of what the member has.
func (c *rawConsumer) beat() *kmsg.ConsumerGroupHeartbeatResponse {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	resp, err := c.req.RequestWith(ctx, c.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	must(c.t, err)
	c.req.MemberEpoch = resp.MemberEpoch
	return resp
}

func subscribed(topics ...string) func(*kmsg.ConsumerGroupHeartbeatRequest) {
	return func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicNames = topics }
}

// The epoch rises when a second one joins, and the first keeps what it is to give up.
func TestGroupsExplainWhoHoldsUpWhom(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "4").ok()
	first := s.rawConsumer("billing", "first", subscribed("orders"))
	eventually(t, func() error { first.beat(); return wantState(s.describe("billing"), groupview.Stable) })
	second := s.rawConsumer("billing", "second", subscribed("orders"))
	eventually(t, func() error { // The next target comes with the assignment interval.
		second.beat()
		first.beat()
		return wantState(s.describe("billing"), groupview.Reconciling)
	})
	x, text := s.explained("billing", func(x explain.Explanation) bool {
		first.beat()
		second.beat()
		return x.UnderWay != nil && len(x.UnderWay.Text) == 2
	})
	says(t, text, "Group billing is Reconciling: its 2 members are on the way to the partitions that the uniform assignor gave them.",
		"A rebalance is under way since", "second at 127.0.0.1 joined.",
		"first at 127.0.0.1 has not given up orders-2 and orders-3, which second at 127.0.0.1 waits for.", "when its rebalance timeout ends, and the others get its partitions.",
		"It rebalanced once in the last hour:", "(epoch 2)", "first at 127.0.0.1 joined the empty group.", "The group now has 1 member; 4 partitions are assigned.",
		"Partitions of each member before and after: first at 127.0.0.1 0 → 4.")
	same(t, "the type", x.Type, groupview.TypeConsumer)
	says(t, s.run("groups", "describe", "billing").ok(), "orders:0-1 (gives up orders:2-3)")
	g := s.describe("billing")
	if m := g.Members[0]; len(m.Revoking) != 1 || m.Since == nil || m.Until == nil || m.Heard == nil || m.Session == nil || !g.Members[1].Waits {
		t.Errorf("the members are %+v", g.Members)
	}
	says(t, s.run("groups", "history", "billing").ok(), "settled", "epoch", "first at 127.0.0.1 must give up 2 partitions for second at 127.0.0.1")

	first.req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	first.beat()
	first.req.Topics = nil
	eventually(t, func() error { second.beat(); return wantState(s.describe("billing"), groupview.Stable) })
	x, text = s.explained("billing", func(x explain.Explanation) bool { return x.RebalanceCount == 2 })
	says(t, text, "(epoch 3)", "1 member became 2; 2 of 4 partitions have a new owner.", "first at 127.0.0.1 4 → 2 and second at 127.0.0.1 0 → 2.")
	same(t, "what is odd", len(x.Findings), 0)
}

// A regular expression that matches nothing, and an assignor of one member.
func TestGroupsExplainWhatConsumersAskFor(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "4").ok()
	pattern, assignor := "invoices.*", "range"
	first := s.rawConsumer("billing", "first", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicRegex = &pattern })
	second := s.rawConsumer("billing", "second", func(r *kmsg.ConsumerGroupHeartbeatRequest) {
		r.SubscribedTopicNames, r.ServerAssignor = []string{"orders"}, &assignor
	})
	x, text := s.explained("billing", func(x explain.Explanation) bool {
		first.beat()
		second.beat()
		return x.State == groupview.Stable && found(x, "regex-matches-nothing") && x.RebalanceCount > 0
	})
	says(t, text, "The regular expression invoices.*, which first at 127.0.0.1 subscribes to, matches no topic, so it has nothing to read.",
		"second at 127.0.0.1 asks for the range assignor, and no one else asks for any: so one member decides for all 2.",
		"The regular expression invoices.* of first at 127.0.0.1 was found to match no topic.")
	assert.True(t, found(x, "assignor-nobody-else-asks-for"), "the findings are %+v", x.Findings)
	says(t, s.run("groups", "history", "billing", "--json").ok(), `"kind":"group-epoch-raised"`, `"kind":"target-assigned"`, `"type":"consumer"`)
}
