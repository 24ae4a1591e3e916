package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// What kafka-consumer-groups does, through kadm.

const (
	adminTopic = "read"  // the live group subscribes to it
	otherTopic = "other" // nobody does
)

// adminBroker is a broker with two topics of two partitions.
type adminBroker struct {
	*kadm.Client
	t    *testing.T
	addr string
	ctx  context.Context
}

func newAdminBroker(t *testing.T) *adminBroker {
	t.Helper()
	addr := startInProcess(t, "", map[string]string{"group.initial.rebalance.delay.ms": "0"}).Addr()
	for _, topic := range []string{adminTopic, otherTopic} {
		createTopic(t, addr, topic, 2)
	}
	ctx, cancel := context.WithTimeout(t.Context(), groupTimeout)
	t.Cleanup(cancel)
	return &adminBroker{Client: kadm.NewClient(connect(t, addr)), t: t, addr: addr, ctx: ctx}
}

// live starts a group with one member, and returns when it is Stable.
func (a *adminBroker) live(group string, opts ...kgo.Opt) *kgo.Client {
	a.t.Helper()
	cl := connect(a.t, a.addr, append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(adminTopic), kgo.ClientID("member"), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.RangeBalancer()),
	}, opts...)...)
	a.waitState(group, "Stable")
	return cl
}

func (a *adminBroker) waitState(group, state string) {
	a.t.Helper()
	waitFor(a.t, group+" to be "+state, func() error {
		d, err := a.DescribeGroups(a.ctx, group)
		if err == nil && d[group].State != state {
			err = fmt.Errorf("it is %s", d[group].State)
		}
		return err
	})
}

// commit commits an offset for both partitions of a topic without being a
// member, which makes a group that has no members.
func (a *adminBroker) commit(group, topic string, at int64) {
	a.t.Helper()
	assert.Must(a.t, a.CommitAllOffsets(a.ctx, group, offsetsAt(topic, at)), "commit for %s", group)
}

func offsetsAt(topic string, at int64) kadm.Offsets {
	var o kadm.Offsets
	for p := range int32(2) {
		o.AddOffset(topic, p, at, -1)
	}
	return o
}

// committed returns the offsets of both partitions, or -1 where there is none.
func (a *adminBroker) committed(group, topic string) [2]int64 {
	a.t.Helper()
	fetched, err := a.FetchOffsetsForTopics(a.ctx, group, topic)
	assert.Must(a.t, err, "fetch the offsets of %s", group)
	return [2]int64{fetched[topic][0].At, fetched[topic][1].At}
}

func (a *adminBroker) wantCommitted(group, topic string, want int64) {
	a.t.Helper()
	if got := a.committed(group, topic); got != [2]int64{want, want} {
		a.t.Errorf("%s has committed %v in topic %s, want %d", group, got, topic, want)
	}
}

func TestListGroupsShowsStateAndProtocolType(t *testing.T) {
	a := newAdminBroker(t)
	a.live("live")
	a.commit("simple", otherTopic, 1)
	left := a.live("left")
	left.LeaveGroup()
	a.waitState("left", "Empty")
	all := map[string][2]string{"live": {"Stable", "consumer"}, "simple": {"Empty", ""}, "left": {"Empty", "consumer"}}
	tests := []struct {
		types, states, want []string
	}{
		{nil, nil, []string{"left", "live", "simple"}},
		{nil, []string{"Stable"}, []string{"live"}},
		{nil, []string{"sTaBlE", "empty"}, []string{"left", "live", "simple"}},
		{nil, []string{"NoSuchState"}, nil},
		{[]string{"Classic"}, []string{"Empty"}, []string{"left", "simple"}},
		{[]string{"consumer"}, nil, nil}, // the type of KIP-848
	}
	for _, tt := range tests {
		listed, err := a.ListGroupsByType(a.ctx, tt.types, tt.states...)
		must(t, err)
		assert.EqualSlices(t, listed.Groups(), tt.want, "types %q, states %q: listed", tt.types, tt.states)
		for name, l := range listed {
			assert.Equal(t, [2]string{l.State, l.ProtocolType}, all[name], "%s is listed", name)
		}
	}
}

func TestDescribeGroupsShowsMembersAndAssignments(t *testing.T) {
	a := newAdminBroker(t)
	a.live("live", kgo.InstanceID("i-1"))
	a.commit("simple", otherTopic, 1)
	described, err := a.DescribeGroups(a.ctx, "live", "simple")
	if err != nil || described.Error() != nil {
		t.Fatal(err, described.Error())
	}
	live := described["live"]
	if live.State != "Stable" || live.ProtocolType != "consumer" || live.Protocol != "range" || len(live.Members) != 1 {
		t.Fatalf("the live group is %+v", live)
	}
	m := live.Members[0]
	if m.ClientID != "member" || m.ClientHost != "/127.0.0.1" || m.InstanceID == nil || *m.InstanceID != "i-1" || !strings.HasPrefix(m.MemberID, "i-1-") {
		t.Errorf("the member is %+v", m)
	}
	if join, ok := m.Join.AsConsumer(); !ok || !slices.Equal(join.Topics, []string{adminTopic}) {
		t.Errorf("the member's subscription is %+v", join)
	}
	if got, want := live.AssignedPartitions(), (kadm.TopicsSet{adminTopic: {0: {}, 1: {}}}); !maps.EqualFunc(got, want, maps.Equal) {
		t.Errorf("assigned are %v, want %v", got, want)
	}
	if s := described["simple"]; s.State != "Empty" || s.ProtocolType != "" || len(s.Members) != 0 {
		t.Errorf("the simple group is %+v", s)
	}
}

func TestDescribeGroupsReportsAnUnknownGroupAsDead(t *testing.T) {
	a := newAdminBroker(t)
	// This looks for the coordinator, as clients do and hand-made requests do not:
	// before that there is none.
	if d, err := a.DescribeGroups(a.ctx, "none"); err != nil || d["none"].Err != kerr.GroupIDNotFound {
		t.Errorf("kadm: %v, %v", err, d["none"].Err)
	}
	w := dial(t, a.addr)
	for version := range int16(7) {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.SetVersion(version)
		req.Groups = []string{"none"}
		g := ask[*kmsg.DescribeGroupsResponse](w, req).Groups[0]
		var want error
		if version >= 6 {
			want = kerr.GroupIDNotFound
		}
		wantCode(t, fmt.Sprintf("DescribeGroups v%d", version), g.ErrorCode, want)
		assert.True(t, g.State == "Dead" && (g.ErrorMessage != nil) == (version >= 6), "DescribeGroups v%d: %+v", version, g)
	}
}

func TestDeleteGroups(t *testing.T) {
	a := newAdminBroker(t)
	member := a.live("live")
	must(t, memberCommit(a.ctx, member, adminTopic, 3))
	a.commit("simple", otherTopic, 7)
	deleted, err := a.DeleteGroups(a.ctx, "live", "simple", "none", "simple")
	must(t, err)
	for group, want := range map[string]error{"live": kerr.NonEmptyGroup, "simple": nil, "none": kerr.GroupIDNotFound} {
		assert.Equal(t, deleted[group].Err, want, "delete %s", group)
	}
	a.wantCommitted("live", adminTopic, 3)
	a.wantCommitted("simple", otherTopic, -1)

	member.LeaveGroup()
	a.waitState("live", "Empty")
	if _, err := a.DeleteGroup(a.ctx, "live"); err != nil {
		t.Errorf("delete the group that was left: %v", err)
	}
	if _, err := a.DeleteGroup(a.ctx, "live"); err != kerr.GroupIDNotFound {
		t.Errorf("delete the deleted group: %v", err)
	}
	a.wantCommitted("live", adminTopic, -1)
	if listed, err := a.ListGroups(a.ctx); err != nil || len(listed) != 0 {
		t.Errorf("listed %v, error %v", listed.Groups(), err)
	}
}

func TestDeleteOffsets(t *testing.T) {
	a := newAdminBroker(t)
	both := kadm.TopicsSet{adminTopic: {0: {}, 1: {}}, otherTopic: {0: {}, 1: {}}}
	member := a.live("live")
	for _, topic := range []string{adminTopic, otherTopic} {
		must(t, memberCommit(a.ctx, member, topic, 5))
	}
	deleted, err := a.DeleteOffsets(a.ctx, "live", both)
	must(t, err)
	for p := range int32(2) {
		if got := deleted[adminTopic][p]; got != kerr.GroupSubscribedToTopic {
			t.Errorf("partition %d of a topic that is subscribed: %v", p, got)
		}
		if got := deleted[otherTopic][p]; got != nil {
			t.Errorf("partition %d of a topic that is not subscribed: %v", p, got)
		}
	}
	a.wantCommitted("live", adminTopic, 5)
	a.wantCommitted("live", otherTopic, -1)

	member.LeaveGroup()
	a.waitState("live", "Empty")
	if deleted, err := a.DeleteOffsets(a.ctx, "live", both); err != nil || deleted.Error() != nil {
		t.Errorf("delete the offsets of an empty group: %v, %v", err, deleted.Error())
	}
	a.wantCommitted("live", adminTopic, -1)
	if _, err := a.DeleteOffsets(a.ctx, "none", both); err != kerr.GroupIDNotFound {
		t.Errorf("delete the offsets of an unknown group: %v", err)
	}
}

// memberCommit commits an offset for both partitions of a topic as a member.
func memberCommit(ctx context.Context, member *kgo.Client, topic string, at int64) error {
	offsets := map[string]map[int32]kgo.EpochOffset{topic: {}}
	for p := range int32(2) {
		offsets[topic][p] = kgo.EpochOffset{Epoch: -1, Offset: at}
	}
	var first error
	member.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		first = err
		if err != nil {
			return
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if first == nil {
					first = kerr.ErrorForCode(p.ErrorCode)
				}
			}
		}
	})
	return first
}

func TestAlterOffsetsNeedsAnEmptyGroup(t *testing.T) {
	a := newAdminBroker(t)
	member := a.live("live")
	must(t, memberCommit(a.ctx, member, adminTopic, 5))
	if err := a.CommitAllOffsets(a.ctx, "live", offsetsAt(adminTopic, 1)); err != kerr.UnknownMemberID {
		t.Errorf("alter the offsets of a live group: %v, want UNKNOWN_MEMBER_ID", err)
	}
	a.wantCommitted("live", adminTopic, 5)

	member.LeaveGroup()
	a.waitState("live", "Empty")
	a.commit("live", adminTopic, 1)
	a.wantCommitted("live", adminTopic, 1)
	a.commit("new", adminTopic, 9) // This makes the group.
	a.wantCommitted("new", adminTopic, 9)
	a.waitState("new", "Empty")
}

func TestCommitFailsForEachPartitionByItself(t *testing.T) {
	a := newAdminBroker(t)
	offsets := offsetsAt(adminTopic, 4)
	offsets.AddOffset(adminTopic, 2, 4, -1)
	offsets.Add(kadm.Offset{Topic: otherTopic, Partition: 0, At: 4, LeaderEpoch: -1, Metadata: strings.Repeat("é", 4096)})
	offsets.Add(kadm.Offset{Topic: otherTopic, Partition: 1, At: 4, LeaderEpoch: -1, Metadata: strings.Repeat("é", 4097)})
	done, err := a.CommitOffsets(a.ctx, "simple", offsets)
	must(t, err)
	want := map[string]map[int32]error{
		adminTopic: {0: nil, 1: nil, 2: kerr.UnknownTopicOrPartition},
		otherTopic: {0: nil, 1: kerr.OffsetMetadataTooLarge},
	}
	for topic, partitions := range want {
		for p, err := range partitions {
			assert.Equal(t, done[topic][p].Err, err, "commit for partition %d of topic %s", p, topic)
		}
	}
	a.wantCommitted("simple", adminTopic, 4)
	assert.Equal(t, a.committed("simple", otherTopic), [2]int64{4, -1}, "committed")
	fetched, err := a.FetchOffsets(a.ctx, "simple")
	assert.True(t, err == nil && fetched[otherTopic][0].Metadata == strings.Repeat("é", 4096), "the metadata did not come back, error %v", err)
}

func TestFetchOffsetsOfAnUnknownGroupIsNoError(t *testing.T) {
	a := newAdminBroker(t)
	if fetched, err := a.FetchOffsets(a.ctx, "none"); err != nil || len(fetched) != 0 {
		t.Errorf("all offsets: %v, error %v", fetched, err)
	}
	a.commit("simple", adminTopic, 2)
	w := dial(t, a.addr)
	for version := int16(1); version <= 9; version++ {
		for _, group := range []string{"none", "simple"} {
			topic := ask[*kmsg.OffsetFetchResponse](w, offsetFetch(version, group, otherTopic, 1))
			p, code := fetchedOffset(version, topic)
			wantCode(t, fmt.Sprintf("OffsetFetch v%d of group %s", version, group), code, nil)
			if p.Offset != -1 || p.LeaderEpoch != -1 || p.Metadata == nil || *p.Metadata != "" || p.ErrorCode != 0 {
				t.Errorf("OffsetFetch v%d of group %s: %+v", version, group, p)
			}
		}
	}
}

// offsetFetch asks for one partition.
func offsetFetch(version int16, group, topic string, partition int32) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.SetVersion(version)
	if version < 8 {
		req.Group = group
		req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
		return req
	}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.MemberEpoch = group, -1
	g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, Partitions: []int32{partition}}}
	req.Groups = append(req.Groups, g)
	return req
}

// fetchedOffset returns the answer for one partition, and the code for the
// group.
func fetchedOffset(version int16, resp *kmsg.OffsetFetchResponse) (kmsg.OffsetFetchResponseGroupTopicPartition, int16) {
	if version >= 8 {
		return resp.Groups[0].Topics[0].Partitions[0], resp.Groups[0].ErrorCode
	}
	p := resp.Topics[0].Partitions[0]
	return kmsg.OffsetFetchResponseGroupTopicPartition{
		Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
	}, resp.ErrorCode
}

func TestLeaveGroupRemovesMembersByInstanceID(t *testing.T) {
	a := newAdminBroker(t)
	lost := make(chan struct{}, 16)
	a.live("live", kgo.InstanceID("i-1"), kgo.HeartbeatInterval(50*time.Millisecond), kgo.OnPartitionsLost(
		func(context.Context, *kgo.Client, map[string][]int32) {
			select {
			case lost <- struct{}{}:
			default:
			}
		}))
	left, err := a.LeaveGroup(a.ctx, kadm.LeaveGroup("live").InstanceIDs("i-2", "i-1").Reason("moved"))
	must(t, err)
	if left["i-1"].Err != nil || left["i-2"].Err != kerr.UnknownMemberID {
		t.Errorf("i-1: %v, i-2: %v", left["i-1"].Err, left["i-2"].Err)
	}
	select {
	case <-lost:
	case <-a.ctx.Done():
		t.Error("the member did not notice that it was removed")
	}
	left, err = a.LeaveGroup(a.ctx, kadm.LeaveGroup("none").InstanceIDs("i-1"))
	if err != nil || left["i-1"].Err != kerr.UnknownMemberID {
		t.Errorf("leave an unknown group: %v, %v", err, left["i-1"].Err)
	}
}

func TestLagOfAGroup(t *testing.T) {
	a := newAdminBroker(t)
	member := a.live("live")
	w := connect(t, a.addr, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i := range 10 {
		r := &kgo.Record{Topic: adminTopic, Partition: int32(i % 2), Value: []byte("x")}
		must(t, w.ProduceSync(a.ctx, r).FirstErr())
	}
	must(t, memberCommit(a.ctx, member, adminTopic, 2))
	lags, err := a.Lag(a.ctx, "live")
	must(t, err)
	live := lags["live"]
	must(t, errors.Join(live.DescribeErr, live.FetchErr))
	if total := live.Lag.Total(); total != 6 {
		t.Errorf("the lag is %d, want 6", total)
	}
}
