package interop

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// parkedGroup is a group whose members say JoinGroup and wait, since the join phase does
// not end, until someone of the consumer protocol comes.
type parkedGroup struct {
	rollingGroup
	relay *relay
	// classic is the assignor of the members that speak the classic protocol.
	classic string
}

func newParkedGroup(t *testing.T, r *relay, name, classic string) *parkedGroup {
	t.Helper()
	return &parkedGroup{relay: r, classic: classic, rollingGroup: rollingGroup{
		consumerGroup: newConsumerGroup(t, []string{r.addr()}, name, "", "uniform", groupPartitions), step: name,
	}}
}

// eachParkedCase runs a test with members that keep what they have while they join
// again, and with members that let go of it, at the same time: they mostly wait.
func eachParkedCase(t *testing.T, name, delay string, f func(p *parkedGroup)) {
	t.Helper()
	r := serveBehindRelay(t, slices.Concat(rollingSettings, []string{"--set", "group.initial.rebalance.delay.ms=" + delay})...)
	var running sync.WaitGroup
	for _, classic := range []string{"cooperative-sticky", "range"} {
		running.Go(func() {
			t.Run(classic, func(t *testing.T) { f(newParkedGroup(t, r, name+"-"+classic, classic)) })
		})
	}
	running.Wait()
}

// TestJoinsThatWaitAreAnsweredWhenTheirGroupIsUpgraded holds the join phase of a classic
// group open while two members that have partitions and two that are new wait in it, of
// franz-go and librdkafka each. Then a member comes that speaks the consumer protocol. All
// who wait have joined the consumer group: they ask for their assignments, and read. Who
// keeps its partitions while it joins loses none of those that do not move.
func TestJoinsThatWaitAreAnsweredWhenTheirGroupIsUpgraded(t *testing.T) {
	eachParkedCase(t, "parked", "0", func(p *parkedGroup) {
		head := p.head()
		owners := []*memberProcess{p.starts("a", "franz-go", false), p.starts("b", "librdkafka", false)}
		head.shares(p.ledger, owners)
		s := p.stream()
		p.readsOn(p.ledger.open(nil))

		since := time.Now().UnixNano()
		waiting := slices.Concat(owners, []*memberProcess{p.starts("c", "franz-go", false), p.starts("d", "librdkafka", false)})
		waits := p.wait(waiting)
		p.readsOn(p.ledger.open(nil)) // An owner that keeps its partitions reads them meanwhile.
		p.members = slices.Concat(waiting, []*memberProcess{p.starts("e", "franz-go", true)})
		p.haveAll() // But for one member, which has nothing and does not join again.
		p.haveJoined(waits, head.generation)
		head.leaves()
		p.settles("consumer", len(waiting))
		p.haveKept(since, owners)
		p.ends(s)
	})
}

// TestFirstJoinsAreAnsweredWhenTheirGroupIsUpgraded is about a group that has no generation
// yet: its first members wait for others to come.
func TestFirstJoinsAreAnsweredWhenTheirGroupIsUpgraded(t *testing.T) {
	eachParkedCase(t, "first", "1000000", func(p *parkedGroup) {
		p.spec.RebalanceMillis = 1_000_000 // The first join phase lasts no longer.
		s := p.stream()
		since := time.Now().UnixNano()
		waiting := []*memberProcess{p.starts("a", "franz-go", false), p.starts("b", "librdkafka", false)}
		waits := p.wait(waiting)
		p.members = slices.Concat(waiting, []*memberProcess{p.starts("c", "librdkafka", true)})
		p.settles("consumer", len(waiting))
		p.haveJoined(waits, 1)
		p.haveKept(since, nil)
		p.ends(s)
	})
}

// starts starts a member of either protocol.
func (p *parkedGroup) starts(name, client string, consumer bool) *memberProcess {
	p.t.Helper()
	spec := p.spec
	spec.ClientID, spec.Client, spec.Consumer = name, client, consumer
	if !consumer {
		spec.Assignor, spec.SessionMillis, spec.HeartbeatMillis = p.classic, int(calmSession.Milliseconds()), 200
	}
	return p.start(spec)
}

// wait waits until the JoinGroup of each of these waits, and returns how many things each
// has asked before.
func (p *parkedGroup) wait(members []*memberProcess) map[*memberProcess]int {
	p.t.Helper()
	before := map[*memberProcess]int{}
	waitFor(p.t, p.step+": all to wait in the join phase", func() error {
		for _, m := range members {
			must(p.t, m.trouble())
			all := p.relay.of(p.spec.Group, m.spec.ClientID)
			if len(all) == 0 {
				return fmt.Errorf("member %s has not said a word", m.spec.ClientID)
			}
			last := all[len(all)-1]
			if join, ok := last.req.(*kmsg.JoinGroupRequest); !ok || join.MemberID == "" || last.resp != nil {
				return fmt.Errorf("the last thing is %s", last)
			}
			before[m] = len(all) - 1
		}
		v, err := p.classicView()
		if err == nil && (v.state != "PreparingRebalance" || v.members < len(members)) {
			err = fmt.Errorf("the group is %s with %d members", v.state, v.members)
		}
		return err
	})
	return before
}

// haveAll waits until the members have everything, and know it.
func (p *parkedGroup) haveAll() {
	p.t.Helper()
	waitFor(p.t, p.step+": the members to have everything", func() error {
		var all []slot
		for _, m := range p.members {
			must(p.t, m.trouble())
			owned := p.ledger.owned(m)
			if len(owned) < groupPartitions/len(p.members) {
				return fmt.Errorf("member %s has %v", m.spec.ClientID, owned)
			}
			all = append(all, owned...)
		}
		if slices.SortFunc(all, slotOrder); !slices.Equal(all, p.slots()) {
			return fmt.Errorf("all members together have %v", all)
		}
		return nil
	})
}

// haveJoined looks at how those that waited were answered: they have joined, in the
// generation of before, and no one leads. Then they ask for their assignments, and may be
// told to join again for them, which none is refused.
func (p *parkedGroup) haveJoined(waits map[*memberProcess]int, generation int32) {
	p.t.Helper()
	for m, before := range waits {
		synced := false
		for i, e := range p.relay.of(p.spec.Group, m.spec.ClientID)[before:] {
			switch resp := e.resp.(type) {
			case *kmsg.JoinGroupResponse:
				if resp.ErrorCode != 0 || resp.LeaderID != "" || len(resp.Members) != 0 || i == 0 && resp.Generation != generation {
					p.t.Errorf("%s: generation %d was upgraded, %s", p.step, generation, e)
				}
			case *kmsg.SyncGroupResponse:
				synced = synced || resp.ErrorCode == 0 && len(resp.MemberAssignment) > 0
				if err := kerr.ErrorForCode(resp.ErrorCode); err != nil && !errors.Is(err, kerr.RebalanceInProgress) {
					p.t.Errorf("%s: %s", p.step, e)
				}
			}
		}
		assert.True(p.t, synced, "%s: member %s was not told its assignment", p.step, m.spec.ClientID)
	}
}

// haveKept looks at what has happened to the partitions since a moment: none was lost, and
// what did not move its owner has had all the time, if it lets go of nothing by itself.
func (p *parkedGroup) haveKept(since int64, owners []*memberProcess) {
	p.t.Helper()
	kept, pause, err := p.ledger.kept(since, func(*memberProcess) bool { return false })
	if p.classic == "range" {
		kept, err = 0, p.ledger.lost(since)
	} else if least := len(owners) * (groupPartitions / len(p.members)); kept < least {
		err = errors.Join(err, fmt.Errorf("only %d partitions did not move", kept))
	}
	if err = errors.Join(err, p.ledger.twice()); err != nil {
		p.t.Errorf("%s: %v", p.step, err)
	}
	p.t.Logf("%d partitions did not move, and were read with pauses of at most %s; after %s",
		kept, time.Duration(pause).Round(time.Millisecond), time.Duration(time.Now().UnixNano()-since).Round(time.Millisecond))
}

// lost returns the partitions that members have lost since a moment.
func (l *ledger) lost(since int64) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, tenures := range l.tenures {
		for _, t := range tenures {
			if t.lost && t.to >= since {
				err = errors.Join(err, fmt.Errorf("%s-%d: member %s lost it at %s", s.topic, s.partition, t.of.spec.ClientID, clock(t.to)))
			}
		}
	}
	return err
}

// ends has the members read everything, and leave.
func (p *parkedGroup) ends(s *stream) {
	p.t.Helper()
	p.readsOn(p.ledger.open(nil))
	s.finish()
	for _, m := range p.members {
		m.leave()
	}
	p.hasRead()
	must(p.t, p.ledger.twice())
}

// groupHead is a member of a classic group that leads it. It has no partitions, and joins
// again only when the test wants it to: until then a join phase does not end.
type groupHead struct {
	*wire
	join       *kmsg.JoinGroupRequest
	generation int32
}

// head joins a group that has no members. Its session is longer than any test.
func (p *parkedGroup) head() *groupHead {
	p.t.Helper()
	wants := kmsg.NewConsumerMemberMetadata()
	wants.Topics = []string{p.spec.Topic + "-not-there"}
	h := &groupHead{wire: dial(p.t, p.relay.addr()), join: joinRequest(p.spec.Group, "", wants.AppendTo(nil))}
	h.join.Protocols[0].Name = p.classic
	waitFor(p.t, "a coordinator", func() error {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorKey = 1, p.spec.Group
		return kerr.ErrorForCode(ask[*kmsg.FindCoordinatorResponse](h.wire, find).ErrorCode)
	})
	waitFor(p.t, "the head of "+p.spec.Group, func() error { return h.joins(nil) })
	return h
}

// joins joins, again if it is a member, and assigns to each member what a plan has for its
// client id.
func (h *groupHead) joins(plan map[string][]slot) error {
	h.t.Helper()
	joined := ask[*kmsg.JoinGroupResponse](h.wire, h.join)
	if err := kerr.ErrorForCode(joined.ErrorCode); err != nil {
		return err
	}
	if h.join.MemberID, h.generation = joined.MemberID, joined.Generation; joined.LeaderID != joined.MemberID {
		h.t.Fatalf("the leader is %q, and not %q", joined.LeaderID, joined.MemberID)
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.Generation, sync.MemberID = 3, h.join.Group, joined.Generation, joined.MemberID
	for i := range joined.Members {
		a, as := kmsg.NewConsumerMemberAssignment(), kmsg.NewSyncGroupRequestGroupAssignment()
		for client, slots := range plan {
			if strings.HasPrefix(joined.Members[i].MemberID, client+"-") {
				t := kmsg.NewConsumerMemberAssignmentTopic()
				for _, s := range slots {
					t.Topic, t.Partitions = s.topic, append(t.Partitions, s.partition)
				}
				a.Topics = append(a.Topics, t)
			}
		}
		as.MemberID, as.MemberAssignment = joined.Members[i].MemberID, a.AppendTo(nil)
		sync.GroupAssignment = append(sync.GroupAssignment, as)
	}
	return kerr.ErrorForCode(ask[*kmsg.SyncGroupResponse](h.wire, sync).ErrorCode)
}

// shares has members join, and gives each an equal part of what there is.
func (h *groupHead) shares(l *ledger, members []*memberProcess) {
	h.t.Helper()
	plan := map[string][]slot{}
	for i, m := range members {
		each := groupPartitions / len(members)
		plan[m.spec.ClientID] = slotsOf(m.spec.Topic, groupPartitions)[i*each : (i+1)*each]
	}
	waitFor(h.t, "the members to have what they are assigned", func() error {
		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Version, beat.Group, beat.Generation, beat.MemberID = 3, h.join.Group, h.generation, h.join.MemberID
		if code := ask[*kmsg.HeartbeatResponse](h.wire, beat).ErrorCode; code != 0 {
			return errors.Join(kerr.ErrorForCode(code), h.joins(plan))
		}
		for _, m := range members {
			if owned := l.owned(m); !slices.Equal(owned, plan[m.spec.ClientID]) {
				return fmt.Errorf("member %s has %v", m.spec.ClientID, owned)
			}
		}
		return nil
	})
}

func (h *groupHead) leaves() {
	h.t.Helper()
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Version, leave.Group, leave.MemberID = 1, h.join.Group, h.join.MemberID
	wantCode(h.t, "leave", ask[*kmsg.LeaveGroupResponse](h.wire, leave).ErrorCode, nil)
}
