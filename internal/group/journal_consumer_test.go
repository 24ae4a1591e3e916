package group

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/consumer"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// cfgInterval is how long a group rests between two targets.
var cfgInterval = kind.DefaultConfig().Consumer.Interval

// crowd is a shard with one consumer group, and clients that beat one after the other.
type crowd struct {
	t      testing.TB
	shard  *Shard
	image  *metadata.Image
	now    time.Time
	id     machine.RequestID
	told   map[string]*kmsg.ConsumerGroupHeartbeatResponse
	owned  map[string][]kmsg.ConsumerGroupHeartbeatRequestTopic
	bytes  int // of the largest entry
	counts map[journal.EntryKind]int
	last   map[journal.EntryKind]journal.Entry
}

func newCrowd(t testing.TB, partitions int) *crowd {
	cfg := kind.DefaultConfig()
	c := &crowd{
		t: t, shard: NewShard(cfg), image: withPartitions(imageOf(map[string]byte{"orders": 1}), map[string]int{"orders": partitions}), now: time.Unix(1_700_000_000, 0),
		told: map[string]*kmsg.ConsumerGroupHeartbeatResponse{}, owned: map[string][]kmsg.ConsumerGroupHeartbeatRequestTopic{}, counts: map[journal.EntryKind]int{}, last: map[journal.EntryKind]journal.Entry{},
	}
	c.step(machine.Loaded{})
	return c
}

func (c *crowd) step(e machine.Event) {
	c.t.Helper()
	fx := c.shard.Step(machine.Input{Now: c.now, Image: c.image, Event: e})
	for _, j := range machine.NotesOf[*journal.Entry](fx.Notes) {
		b, err := json.Marshal(&j)
		must(c.t, err)
		c.bytes = max(c.bytes, len(b))
		c.counts[j.Kind]++
		c.last[j.Kind] = *j
	}
	for _, r := range fx.Replies {
		m := r.Msg.(*kmsg.ConsumerGroupHeartbeatResponse)
		if m.ErrorCode != 0 {
			c.t.Fatalf("a heartbeat is refused: %d %s", m.ErrorCode, *m.ErrorMessage)
		}
		c.told[*m.MemberID] = m
		if m.Assignment != nil {
			list := []kmsg.ConsumerGroupHeartbeatRequestTopic{}
			for _, t := range m.Assignment.Topics {
				list = append(list, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: t.TopicID, Partitions: t.Partitions})
			}
			c.owned[*m.MemberID] = list
		}
	}
	for _, task := range append([]machine.Task{}, fx.Tasks...) {
		c.step(machine.TaskDone{ID: task.ID, Result: task.Run()})
	}
}

// beat has a client say what it has. The first time it joins.
func (c *crowd) beat(member string) {
	c.t.Helper()
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.RebalanceTimeoutMillis = 1, "g", member, -1
	req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	if last := c.told[member]; last != nil {
		req.MemberEpoch, req.Topics = last.MemberEpoch, c.owned[member]
	} else {
		req.RebalanceTimeoutMillis, req.SubscribedTopicNames = 60_000, []string{"orders"}
	}
	c.id++
	c.step(machine.Request{ID: c.id, ClientID: member, Host: "10.0.0.1", Msg: req})
}

// settle has members beat until the group is Stable.
func (c *crowd) settle(members []string) {
	c.t.Helper()
	for range 10 {
		c.now = c.now.Add(2 * cfgInterval)
		for _, m := range members {
			c.beat(m)
		}
		if c.shard.consumer("g").StateName() == modern.StateStable {
			return
		}
	}
	c.t.Fatalf("the group is %s", c.shard.consumer("g").StateName())
}

// A group of 5,000 members with 10,000 partitions writes a few entries for each change,
// none of them large, whatever its members are called; and none when nothing changes.
func TestTheJournalOfALargeConsumerGroupIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		suffix          string
		members, limits int
	}{
		"ordinary names": {"", 5000, 64 << 10},
		"hostile names":  {strings.Repeat("\x01", 10_000), 300, 768 << 10},
	} {
		w := newCrowd(t, 2*c.members)
		var members []string
		for i := range c.members {
			members = append(members, fmt.Sprintf("member-%04d%s", i, c.suffix))
		}
		// All but one have joined before anybody says what it has let go of.
		for _, m := range members[:c.members-1] {
			w.beat(m)
		}
		w.settle(members[:c.members-1])
		if w.counts[journal.KindSettled] != 2 { // The first member's, and everybody's.
			t.Errorf("%s: settled %d times", name, w.counts[journal.KindSettled])
		}
		clear(w.counts)
		w.now = w.now.Add(2 * cfgInterval)
		w.beat(members[c.members-1])
		w.settle(members)
		if w.counts[journal.KindEpoch] != 1 || w.counts[journal.KindTarget] != 1 || w.counts[journal.KindSettled] != 1 || len(w.counts) != 3 {
			t.Errorf("%s: a join writes %v", name, w.counts)
		}
		if e := w.last[journal.KindTarget]; e.PartitionN != 2*c.members || e.MoveN == 0 || e.RevokeN == 0 || e.ShareN < 2 || len(e.Shares) > kind.MaxTriggers || len(e.Revokes) > kind.MaxTriggers || len(e.Moves) > kind.MaxMoves {
			t.Errorf("%s: the target has %d partitions, %d moves, %d revokes, %d shares", name, e.PartitionN, e.MoveN, e.RevokeN, e.ShareN)
		}
		clear(w.counts)
		w.settle(members)
		if len(w.counts) > 0 {
			t.Errorf("%s: nothing happens, and the journal has %v", name, w.counts)
		}
		if w.bytes > c.limits {
			t.Errorf("%s: an entry has %d bytes", name, w.bytes)
		}
		t.Logf("%s: the largest entry has %d bytes", name, w.bytes)
	}
}

// Who tells of moving between the protocols finds the kinds and the words here.
func TestTheJournalTellsOfMovingBetweenTheProtocols(t *testing.T) {
	w := newCrowd(t, 1)
	w.beat("a")
	x, g := &w.shard.step, w.shard.consumer("g")
	x.Out.Notes = nil
	g.NoteUpgraded(x, &journal.Who{Member: "a"}, 3)
	consumer.NoteDowngraded(x, classic.New(kind.Base{ID: "g"}), &journal.Who{Member: "b"}, 2)
	up, down := x.Out.Notes[0].(*journal.Entry), x.Out.Notes[1].(*journal.Entry)
	if up.Kind != journal.KindUpgraded || up.By.Member != "a" || up.Before != 3 || up.After != 1 || up.Generation != 2 || up.Type != journal.TypeConsumer {
		t.Errorf("of an upgrade it says %+v", up)
	}
	if down.Kind != journal.KindDowngraded || down.By.Member != "b" || down.Before != 2 || down.Group != "g" {
		t.Errorf("of a downgrade it says %+v", down)
	}
	if g.Account.Counted != 3 {
		t.Error("the next epoch does not begin with the members that the group had")
	}
}

// Where a member stands is in a tagged field: who asks for which assignor, what a
// pattern matches, what it has not let go of, since when and until when.
func TestDescribeTellsWhereMembersStand(t *testing.T) {
	w := newCrowd(t, 4)
	w.beat("a")
	w.now = w.now.Add(2 * cfgInterval)
	w.beat("b")
	w.now = w.now.Add(5 * time.Second)
	told := w.now
	w.beat("a") // It is told to let go.
	w.now = w.now.Add(7 * time.Second)
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Version, req.Groups = 1, []string{"g"}
	fx := w.shard.Step(machine.Input{Now: w.now, Image: w.image, Event: machine.Request{ID: 99, Msg: req}})
	members := fx.Replies[0].Msg.(*kmsg.ConsumerGroupDescribeResponse).Groups[0].Members
	a, b := journal.MemberStatusOf(&members[0].UnknownTags), journal.MemberStatusOf(&members[1].UnknownTags)
	if a == nil || len(a.Revoking) != 1 || a.Revoking[0].Topic != "orders" || fmt.Sprint(a.Revoking[0].Partitions) != "[2 3]" || !a.Since.Equal(told) || !a.Until.Equal(told.Add(time.Minute)) || !a.Heard.Equal(told) || !a.Session.Equal(told.Add(45*time.Second)) || a.Waits {
		t.Errorf("a stands at %+v", a)
	}
	if b == nil || !b.Waits || !b.Since.Equal(told.Add(-5*time.Second)) || b.Revoking != nil || b.Matches != nil {
		t.Errorf("b stands at %+v", b)
	}
	range1, pattern := "range", "o.*"
	mem := w.shard.consumer("g").Member("b")
	says := *mem.Metadata
	says.Assignor, says.Regex = &range1, &pattern
	mem.Metadata = &says
	w.shard.consumer("g").Regexes[pattern] = &consumer.Regex{}
	if s := w.shard.consumer("g").Details(&w.shard.step, mem, 0); s.Assignor != "range" || s.Matches == nil || *s.Matches != 0 {
		t.Errorf("b asks for %+v", s)
	}
}
