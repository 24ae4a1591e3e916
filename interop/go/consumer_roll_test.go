package interop

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/redistest"
)

const (
	rollingMembers = 6
	// A member stalls while this one is restarted, and the coordinator is killed while
	// that one is, where there are several brokers.
	rollingStall, rollingKill = 2, 3
)

// rollingOrder is the order in which members are restarted.
var rollingOrder = []int{1, 2, 3, 4, 5, 0}

// rollingSettings have members of consumer groups heard of often, but not missed:
// no one is to be thrown out however slow the machine is. librdkafka waits one interval
// for an answer to a heartbeat; a member that missed two answers, each with an epoch of
// its own, is fenced, as with Kafka.
var rollingSettings = []string{
	"--set", "group.consumer.heartbeat.interval.ms=1000", "--set", "group.consumer.session.timeout.ms=60000",
	"--set", "group.consumer.assignment.interval.ms=100",
}

// TestRunningGroupsRollToTheOtherProtocolAndBack restarts the six members of a group,
// franz-go and librdkafka in turn, one after the other, so that they speak the consumer
// protocol, and then so that they speak the classic one again. A partition that does
// not move is read by its owner all the time, also while a member stalls on which
// the others' assignment waits; none has two owners at once; committed offsets
// never go back; and in the end every record was delivered. On Redis there are three
// brokers, and in each direction the one that coordinates the group is killed.
func TestRunningGroupsRollToTheOtherProtocolAndBack(t *testing.T) {
	onlyOn(t, "disk", "redis")
	began := time.Now()
	settings := slices.Concat(copySettings, rollingSettings)
	var site copySite
	var brokers *fleet
	if storeKind == "disk" {
		site = startDiskSite(t, settings...)
	} else {
		brokers = startFleet(t, redistest.Single(t).URL(), 3, settings...)
		site = fleetSite{brokers}
	}
	r := &rollingGroup{consumerGroup: newConsumerGroup(t, site.addresses(), "rolling", "", "uniform", groupPartitions), brokers: brokers}
	// The first is franz-go, and leads as long as there is a classic group: librdkafka
	// writes the user data of members that stick to theirs into their assignments, and
	// a group with such assignments is not upgraded, as with Kafka.
	for i := range rollingMembers {
		r.members = append(r.members, r.starts(i, false))
		if i == 0 {
			r.settles("classic", 1)
		}
	}
	r.settles("classic", rollingMembers)
	s := r.stream()
	r.readsOn(r.ledger.open(nil))
	r.changedCoordinator()
	for n, i := range rollingOrder {
		r.restart(i, true)
		r.settles("consumer", rollingMembers-1-n)
	}
	for n, i := range rollingOrder {
		r.restart(i, false)
		if n < rollingMembers-1 {
			r.settles("consumer", n+1)
		} else {
			r.settles("classic", rollingMembers)
		}
	}
	s.finish()
	for _, m := range r.members {
		m.leave()
	}
	r.hasRead()
	must(t, r.ledger.twice())
	records, tenures := r.ledger.counts()
	t.Logf("%d records, partitions came to a member %d times, in %s", records, tenures, time.Since(began).Round(time.Millisecond))
}

// rollingGroup is a group whose members speak one protocol or the other.
type rollingGroup struct {
	*consumerGroup
	brokers *fleet // nil if there is one broker
	members []*memberProcess
	since   int64 // when the present step began
	epoch   int32 // the coordinator's when the step before was over
	step    string
}

// starts starts a member. All assignors are cooperative, so that members need give up
// only what moves.
func (r *rollingGroup) starts(i int, consumer bool) *memberProcess {
	r.t.Helper()
	spec := r.spec
	spec.Client = []string{"franz-go", "librdkafka"}[i%2]
	spec.Consumer, spec.ClientID = consumer, fmt.Sprintf("m%d-%d", i, len(r.all))
	if !consumer {
		spec.Assignor, spec.SessionMillis, spec.HeartbeatMillis = "cooperative-sticky", int(calmSession.Milliseconds()), 200
	}
	return r.start(spec)
}

// restart ends a member, and starts it again with the other protocol.
func (r *rollingGroup) restart(i int, consumer bool) {
	r.t.Helper()
	r.step = fmt.Sprintf("%s becomes consumer=%t", r.members[i].spec.ClientID, consumer)
	r.since = time.Now().UnixNano()
	r.members[i].leave()
	if consumer && i == rollingOrder[0] {
		r.settlesWithout(i)
	}
	if i == rollingStall {
		r.stalls(i, consumer)
		return
	}
	r.members[i] = r.starts(i, consumer)
	if i == rollingKill && r.brokers != nil {
		r.kills(r.members[i])
	}
}

// settlesWithout waits until the classic group has got over the loss of a member: what its
// members plan for that would be undone by the upgrade, and partitions go and come back.
// What becomes of those who wait in a join phase then is in consumer_parked_test.go.
func (r *rollingGroup) settlesWithout(i int) {
	r.t.Helper()
	others := slices.Delete(slices.Clone(r.members), i, i+1)
	waitFor(r.t, r.step+": the others to settle", func() error {
		_, err := r.settled(r.view, others, r.ledger.owned, r.slots())
		return err
	})
}

// stalls starts a member while one of the classic protocol stalls, so that the group
// cannot settle, and waits until the others have read on.
func (r *rollingGroup) stalls(i int, consumer bool) {
	r.t.Helper()
	still := r.members[i-1] // It has the protocol already that this one gets.
	if consumer {
		still = r.members[i+1]
	}
	still.stall()
	r.members[i] = r.starts(i, consumer)
	unsettled := func() error {
		v, err := r.view()
		if _, joined := v.owners[r.members[i].spec.ClientID]; err == nil && (v.state != "Reconciling" || !joined) {
			err = fmt.Errorf("the group is %s, with the new member: %t", v.state, joined)
		}
		return err
	}
	waitFor(r.t, "the group to wait for a member", unsettled)
	n := r.readsOn(r.ledger.open(still))
	assert.NoError(r.t, unsettled(), "%s: it was to wait for %s", r.step, still.spec.ClientID)
	still.resume()
	r.t.Logf("%s stalled, and %d partitions were read on", still.spec.ClientID, n)
}

// kills ends the coordinator as soon as a member has joined, waits until the group has
// got over it, and starts the broker again.
func (r *rollingGroup) kills(joins *memberProcess) {
	r.t.Helper()
	victim := r.brokers.leader("__consumer_offsets", offsetsPartition(r.spec.Group, 50))
	waitFor(r.t, "the member to join", func() error {
		v, err := r.view()
		if _, joined := v.owners[joins.spec.ClientID]; err == nil && !joined {
			err = errors.New("it has not")
		}
		return err
	})
	r.brokers.brokers[victim].kill()
	waitFor(r.t, "the group to settle without its coordinator", func() error {
		_, err := r.settled(r.view, r.members, r.ledger.owned, r.slots())
		return err
	})
	r.readsOn(r.ledger.open(nil))
	r.brokers.start(victim)
	r.brokers.hasAll()
}

// view describes the group by its protocol of the moment.
func (r *rollingGroup) view() (groupView, error) {
	r.t.Helper()
	g := &r.clientGroup
	if r.brokers != nil {
		// A client that knows nothing yet: franz-go remembers, for these requests, a
		// coordinator that it cannot connect to.
		cl, err := kgo.NewClient(kgo.SeedBrokers(r.addrs...))
		if err != nil {
			return groupView{}, err
		}
		defer cl.Close()
		g = &clientGroup{t: r.t, admin: kadm.NewClient(cl), spec: r.spec}
	}
	v, err := g.consumerView()
	if errors.Is(err, kerr.GroupIDNotFound) {
		return g.classicView()
	}
	return v, err
}

// settles waits until the group has this type, all members have their partitions, and
// each partition is read on. It complains of what must not have been on the way.
func (r *rollingGroup) settles(kind string, classic int) {
	r.t.Helper()
	waitFor(r.t, r.step+": the group to settle", func() error {
		v, err := r.settled(r.view, r.members, r.ledger.owned, r.slots())
		if err == nil && (v.consumer != (kind == "consumer") || v.classic != classic) {
			err = fmt.Errorf("a consumer group: %t, with %d classic members", v.consumer, v.classic)
		}
		return err
	})
	if r.since == 0 {
		return // No one writes yet.
	}
	r.readsOn(r.ledger.open(nil))
	r.checkKept(kind, classic)
}

// checkKept looks at what has happened to the partitions in this step.
func (r *rollingGroup) checkKept(kind string, classic int) {
	r.t.Helper()
	lossy := r.changedCoordinator()
	kept, pause, err := r.ledger.kept(r.since, func(m *memberProcess) bool {
		// A franz-go member joins again, by itself, when it cannot connect to its
		// coordinator.
		return lossy && m.spec.Client == "franz-go"
	})
	if err = errors.Join(err, r.ledger.twice()); err != nil {
		r.t.Fatalf("%s: %v", r.step, err)
	}
	// What the one that goes has moves, and as much comes to the one that comes. In the
	// first step and in the last members make a plan too, which is theirs.
	const each = groupPartitions / rollingMembers
	if planned := kind == "classic" || classic == rollingMembers-1; kept < groupPartitions-2*each && !planned && !lossy {
		r.t.Errorf("%s: only %d partitions of %d did not move", r.step, kept, groupPartitions)
	}
	r.t.Logf("%s: %d partitions did not move, and were read with pauses of at most %s; after %s",
		r.step, kept, time.Duration(pause).Round(time.Millisecond), time.Duration(time.Now().UnixNano()-r.since).Round(time.Millisecond))
}

// changedCoordinator says whether the group has changed its coordinator since it was
// asked last: by a kill, or because brokers were silent for too long on a slow machine.
func (r *rollingGroup) changedCoordinator() bool {
	r.t.Helper()
	if r.brokers == nil {
		return false
	}
	before := r.epoch
	_, r.epoch = r.brokers.leads("__consumer_offsets", offsetsPartition(r.spec.Group, 50))
	return r.epoch != before
}

// readsOn waits until each of these tenures that lasts has read some more, and returns
// how many there are.
func (r *rollingGroup) readsOn(of map[*tenure]int) (n int) {
	r.t.Helper()
	waitFor(r.t, r.step+": partitions to be read on", func() error {
		var err error
		n, err = r.ledger.readOn(of, 5)
		return err
	})
	return n
}

// open returns the tenures that last, but for those of one member, and how many records
// were read in each.
func (l *ledger) open(but *memberProcess) map[*tenure]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[*tenure]int{}
	for _, tenures := range l.tenures {
		for _, t := range tenures {
			if t.to == 0 && t.of != but {
				out[t] = t.reads
			}
		}
	}
	return out
}

// readOn says whether so many more records were read in each tenure that still lasts,
// and how many these are.
func (l *ledger) readOn(of map[*tenure]int, more int) (lasting int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t, before := range of {
		if t.to != 0 {
			continue
		}
		lasting++
		if t.reads < before+more {
			err = fmt.Errorf("member %s has read %d more records of a partition", t.of.spec.ClientID, t.reads-before)
		}
	}
	return lasting, err
}

// kept returns how many partitions have had one owner all the time since a moment, and
// the longest time between two of the reports of records of them. It complains of
// partitions that went away from their owner and came back to it with no other in
// between, and of those that a member lost that may not.
func (l *ledger) kept(since int64, mayLose func(*memberProcess) bool) (n int, pause int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, tenures := range l.tenures {
		ordered := slices.SortedFunc(slices.Values(tenures), func(a, b *tenure) int { return int(a.from - b.from) })
		last := ordered[len(ordered)-1]
		if last.from < since && last.to == 0 {
			n++
			pause = max(pause, last.pause)
		}
		last.pause = 0
		for i, t := range ordered {
			if t.to < since || t.lost && mayLose(t.of) {
				continue // It ended before, or lasts.
			}
			if t.lost {
				err = errors.Join(err, fmt.Errorf("%s-%d: member %s lost it at %s", s.topic, s.partition, t.of.spec.ClientID, clock(t.to)))
			}
			if i+1 < len(ordered) && ordered[i+1].of == t.of {
				err = errors.Join(err, fmt.Errorf("%s-%d: it was taken from member %s at %s, and given back at %s",
					s.topic, s.partition, t.of.spec.ClientID, clock(t.to), clock(ordered[i+1].from)))
			}
		}
	}
	return n, pause, err
}
