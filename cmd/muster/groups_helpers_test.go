package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
)

// patience is how long tests wait for what must happen.
const patience = 20 * time.Second

// newGroupShell starts a broker with settings that keep group tests short.
func newGroupShell(t *testing.T) *shell {
	t.Helper()
	return newShell(t, "group.initial.rebalance.delay.ms", "0", "group.min.session.timeout.ms", "100")
}

// eventually waits until check is content.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("still, after %s: %v", patience, err)
		}
	}
}

func (s *shell) client(opts ...kgo.Opt) *kgo.Client {
	s.t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.broker), kgo.DisableClientMetrics()}, opts...)...)
	must(s.t, err)
	s.t.Cleanup(client.Close)
	return client
}

// member starts a member of a group. It joins by itself, and commits when it
// is told to.
func (s *shell) member(group string, topics []string, opts ...kgo.Opt) *kgo.Client {
	s.t.Helper()
	return s.client(append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.Balancers(kgo.RangeBalancer()),
		kgo.HeartbeatInterval(50 * time.Millisecond), kgo.SessionTimeout(10 * time.Second), kgo.FetchMaxWait(100 * time.Millisecond),
	}, opts...)...)
}

// take reads n records and commits them.
func (s *shell) take(c *kgo.Client, n int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for n > 0 {
		fetches := c.PollFetches(ctx)
		assert.Must(s.t, fetches.Err(), "with %d records to come", n)
		n -= fetches.NumRecords()
	}
	must(s.t, c.CommitUncommittedOffsets(ctx))
}

// recordLines writes lines for muster produce --json-lines: n records of a
// partition, of an age.
func recordLines(partition, n int, age time.Duration) string {
	var out strings.Builder
	for range n {
		fmt.Fprintf(&out, "{\"value\":\"x\",\"partition\":%d,\"timestamp\":%d}\n", partition, time.Now().Add(-age).UnixMilli())
	}
	return out.String()
}

// describe returns a group.
func (s *shell) describe(group string) groupview.Group {
	s.t.Helper()
	r := s.run("groups", "describe", group, "--json")
	r.ok()
	return decode[[]groupview.Group](r)[0]
}

// stable waits until a group is Stable with so many members.
func (s *shell) stable(group string, members int) groupview.Group {
	s.t.Helper()
	var out groupview.Group
	eventually(s.t, func() error {
		r := s.run("groups", "describe", group, "--json")
		if r.code != exitOK {
			return errors.New(r.err)
		}
		out = decode[[]groupview.Group](r)[0]
		if out.State != groupview.Stable || len(out.Members) != members {
			return fmt.Errorf("group %s is %s with %d members", group, out.State, len(out.Members))
		}
		return nil
	})
	return out
}

// explained waits until explain is what check wants, and returns it in prose too.
func (s *shell) explained(group string, check func(explain.Explanation) bool) (explain.Explanation, string) {
	s.t.Helper()
	var out explain.Explanation
	eventually(s.t, func() error {
		r := s.run("groups", "explain", group, "--json")
		if r.code != exitOK {
			return errors.New(r.err)
		}
		if out = decode[explain.Explanation](r); !check(out) {
			return fmt.Errorf("explain says %s", r.stdout)
		}
		return nil
	})
	return out, oneLine(s.run("groups", "explain", group).ok())
}

// oneLine undoes the wrapping of prose.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// says demands that a text has others in it.
func says(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func saysNot(t *testing.T, text string, unwanted ...string) {
	t.Helper()
	for _, u := range unwanted {
		if strings.Contains(text, u) {
			t.Errorf("%q is in:\n%s", u, text)
		}
	}
}

// found says whether there is a finding of that id.
func found(x explain.Explanation, id string) bool {
	for _, f := range x.Findings {
		if f.ID == id && f.Text != "" && f.Change != "" {
			return true
		}
	}
	return false
}

// rawMember speaks the group protocol by hand, so that it can fall silent, or do
// what no client would.
type rawMember struct {
	s        *shell
	client   *kgo.Client
	group    string
	topics   []string
	session  time.Duration
	instance *string
	id       string
	gen      int32
}

func (s *shell) rawMember(group string, session time.Duration, topics ...string) *rawMember {
	s.t.Helper()
	return &rawMember{s: s, client: s.client(kgo.ClientID("raw")), group: group, topics: topics, session: session}
}

// join joins the group, waits for the others, and if it leads assigns all
// partitions to itself.
func (m *rawMember) join(ctx context.Context) error {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.ProtocolType = m.group, m.id, m.instance, groupview.Consumer
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(m.session.Milliseconds()), int32(patience.Milliseconds())
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = m.topics
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", subscription.AppendTo(nil)
	req.Protocols = append(req.Protocols, protocol)
	resp, err := req.RequestWith(ctx, m.client)
	if err != nil {
		return err
	}
	m.id, m.gen = resp.MemberID, resp.Generation
	if errors.Is(kerr.ErrorForCode(resp.ErrorCode), kerr.MemberIDRequired) {
		return m.join(ctx)
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return err
	}
	return m.sync(ctx, resp)
}

func (m *rawMember) sync(ctx context.Context, joined *kmsg.JoinGroupResponse) error {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = m.group, m.id, m.instance, m.gen
	req.ProtocolType, req.Protocol = joined.ProtocolType, joined.Protocol
	if joined.LeaderID == m.id {
		all := kmsg.NewConsumerMemberAssignment()
		for _, topic := range m.topics {
			t := kmsg.NewConsumerMemberAssignmentTopic()
			t.Topic, t.Partitions = topic, []int32{0, 1}
			all.Topics = append(all.Topics, t)
		}
		own := kmsg.NewSyncGroupRequestGroupAssignment()
		own.MemberID, own.MemberAssignment = m.id, all.AppendTo(nil)
		req.GroupAssignment = append(req.GroupAssignment, own)
	}
	resp, err := req.RequestWith(ctx, m.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

// mustJoin is join for members that nothing keeps from it.
func (m *rawMember) mustJoin() {
	m.s.t.Helper()
	ctx, cancel := context.WithTimeout(m.s.t.Context(), patience)
	defer cancel()
	must(m.s.t, m.join(ctx))
}

// commit commits an offset of partition 0, as someone who is no member.
func commit(t *testing.T, client *kgo.Client, group, topic string, offset int64) {
	t.Helper()
	var offsets kadm.Offsets
	offsets.AddOffset(topic, 0, offset, -1)
	must(t, kadm.NewClient(client).CommitAllOffsets(t.Context(), group, offsets))
}

func groupName(i int) string { return fmt.Sprintf("g-%04d", i) }

func wantState(g groupview.Group, state string) error {
	if g.State != state {
		return fmt.Errorf("group %s is %s, not %s", g.Name, g.State, state)
	}
	return nil
}

// background runs something that may wait for ever, and returns a function that
// ends it.
func background(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() {
		cancel()
		<-done
	}
}
