package group

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"muster/internal/group/consumer"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/harness"
	"muster/internal/machine"
)

// TestAnySequenceOfConsumersKeepsTheInvariants has clients of the consumer protocol do
// anything, in any order, while answers are lost, topics come and go, steps are stored
// in part and brokers crash. After each step the invariants hold, the log says what the
// shard knows, epochs have not gone back, and no two members have the same partition,
// as their clients see it. In the end, when nothing new happens, everybody soon has
// what they are to have; and left alone the group goes.
func TestAnySequenceOfConsumersKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newConsumers(t)
		t.Repeat(map[string]func(*rapid.T){
			"beat": w.beat, "beat again": w.beat, "beat once more": w.beat, "all beat": w.allBeat, "join": w.join, "leave": w.leave, "subscribe": w.subscribe,
			"stranger": w.stranger, "commit": w.commit, "task": w.task, "wait": w.wait, "topics": w.changeTopics,
			"stale timer": w.staleTimer, "configure": w.configure, "crash": w.crash, "torn": w.tear, "delete": w.deleteGroup,
		})
		w.settle(t)
		w.calm(t)
	})
}

// consumers is what is around a shard with a consumer group.
type consumers struct {
	world
	clients  []*client
	classics []*classicClient
	tasks    []machine.Task
	counts   map[string]int // partitions of topics
	tear1    int            // after how many records the next append fails, -1 if it does not
	epochs   [2]int32       // of the group and its target before
	members  map[string]int32
	group    *consumer.Group
	records  int // of the last step
	losses   int // how often the end of the log was lost
}

// client is a client as it sees itself.
type client struct {
	id       string
	instance *string
	topics   []string
	regex    *string
	epoch    int32
	has      map[consumer.Partition]bool // what it works on
	told     []consumer.Partition        // what it was last told to work on
	flight   machine.RequestID           // what it waits for, 0 if nothing
	loses    bool                        // it will not hear the answer to that
	resends  bool                        // it must say everything anew
	joined   bool
	heard    bool // it was answered since the last load
}

func newConsumers(t *rapid.T) *consumers {
	i, j := "i", "j"
	w := &consumers{counts: map[string]int{"t": 3, "u": 2}, tear1: -1, members: map[string]int32{}}
	w.world = world{cfg: kind.DefaultConfig(), now: time.Unix(1_700_000_000, 0), topics: map[string]byte{"t": 1, "u": 2}, ids16: 2}
	w.cfg.OffsetsRetention = time.Hour
	w.cfg.Consumer.AtOnce = pick(t, "at once", 0, 0, 1)
	for _, c := range []*client{{id: "a"}, {id: "b"}, {id: "c", instance: &i}, {id: "d", instance: &i}, {id: "e", instance: &j}} {
		c.has, c.topics = map[consumer.Partition]bool{}, []string{"t"}
		w.clients = append(w.clients, c)
	}
	w.image = withPartitions(imageOf(w.topics), w.counts)
	w.load(t)
	return w
}

func (w *consumers) load(t *rapid.T) {
	w.shard, w.twin = replayed(w.log, w.cfg), replayed(w.log, w.cfg)
	w.asked, w.timers, w.stale, w.tasks = map[machine.RequestID]kmsg.Request{}, map[machine.TimerKey]machine.Timer{}, nil, nil
	for _, c := range w.clients {
		if c.flight != 0 { // It is told NOT_COORDINATOR.
			c.flight, c.resends = 0, true
		}
	}
	for _, c := range w.classics {
		if c.flight != 0 {
			c.flight, c.loses, c.phase = 0, false, phaseJoins
		}
	}
	w.step(t, machine.Loaded{Epoch: int32(w.losses)})
}

func (w *consumers) step(t *rapid.T, e machine.Event) machine.Effects {
	w.fresh++
	in := machine.Input{Now: w.now, Random: freshBytes(w.fresh), Image: w.image, Event: e}
	offsets := w.shard.committedOffsets()
	fx, same := w.shard.Step(in), w.twin.Step(in)
	if len(fx.Tasks) != len(same.Tasks) || !reflect.DeepEqual(withoutTasks(fx), withoutTasks(same)) {
		t.Fatalf("the same input has two effects: %+v and %+v", fx, same)
	}
	if n := w.tear1; n >= 0 && len(fx.Batches) > 0 {
		w.tear1 = -1
		stored, _ := tornAfter(fx.Batches, n)
		w.log = append(w.log, stored...)
		w.load(t)
		return machine.Effects{}
	}
	w.log = append(w.log, cloneBatches(fx.Batches)...)
	w.tasks = append(w.tasks, fx.Tasks...)
	w.records = 0
	for _, b := range fx.Batches {
		w.records += len(b.Records)
	}
	w.stale = append(w.stale, harness.Arm(w.timers, fx.Timers)...)
	for _, r := range fx.Replies {
		w.answered(t, r)
	}
	w.checkOffsets(t, e, offsets)
	w.check(t)
	return fx
}

func withoutTasks(fx machine.Effects) machine.Effects {
	fx.Tasks = nil
	return fx
}

func (w *consumers) request(t *rapid.T, msg kmsg.Request) machine.RequestID {
	w.next++
	w.asked[w.next] = harness.OnTheWire(t, msg)
	return w.next
}

func (w *consumers) send(t *rapid.T, id machine.RequestID) {
	w.step(t, machine.Request{ID: id, ClientID: "c", Host: "h", Msg: w.asked[id]})
}

// answered has a client hear an answer, unless that is lost.
func (w *consumers) answered(t *rapid.T, r machine.Reply) {
	_, resp := harness.Answered(t, w.asked, r)
	for _, c := range w.classics {
		if c.flight == r.ID {
			w.hearClassic(c, resp)
		}
	}
	m, ok := resp.(*kmsg.ConsumerGroupHeartbeatResponse)
	if !ok {
		return
	}
	for _, c := range w.clients {
		if c.flight == r.ID {
			c.hear(m)
		}
	}
}

// hear does what a client does with an answer. It begins to work on what it was given
// at once, and goes on with what was taken from it until it says that it has let go.
func (c *client) hear(m *kmsg.ConsumerGroupHeartbeatResponse) {
	c.flight = 0
	switch {
	case c.loses:
		c.loses, c.resends = false, true
	case m.ErrorCode != 0:
		c.forget()
	case m.MemberEpoch >= 0:
		if c.epoch, c.heard = m.MemberEpoch, true; m.Assignment != nil {
			c.told = nil
			for _, t := range m.Assignment.Topics {
				for _, n := range t.Partitions {
					c.told = append(c.told, consumer.Partition{Topic: t.TopicID, Number: n})
					c.has[consumer.Partition{Topic: t.TopicID, Number: n}] = true
				}
			}
		}
	}
}

func (c *client) forget() {
	c.epoch, c.told, c.joined, c.resends = 0, nil, false, false
	clear(c.has)
}

func (w *consumers) check(t *rapid.T) {
	if err := w.shard.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	w.checkLog(t)
	parked, expected := 0, 1 // The sweep.
	c := w.shard.consumer("g")
	if c == nil {
		w.group = nil
		clear(w.members)
		if g := w.shard.classic("g"); g != nil {
			n, timers := w.checkClassic(t, g)
			parked, expected = parked+n, expected+timers
		}
	} else {
		for _, m := range c.Members {
			expected += w.armed(t, m.Timer(kind.TimerSession, "g"), m.TimerSeq) + w.armed(t, m.Timer(kind.TimerRevoke, "g"), m.RevokeSeq)
			expected += w.armed(t, m.Timer(kind.TimerJoin, "g"), m.JoinSeq) + w.armed(t, m.Timer(kind.TimerSync, "g"), m.SyncSeq)
		}
		if c.Run != nil && c.Run.Parked != nil {
			parked++
		}
		w.checkEpochs(t, c)
		w.checkClients(t, c)
	}
	if parked != len(w.asked) {
		t.Fatalf("%d requests are not answered, %d are parked", len(w.asked), parked)
	}
	if len(w.timers) != expected {
		t.Fatalf("%d timers are armed, %d are waited for: %v", len(w.timers), expected, w.timers)
	}
}

// checkEpochs says whether an epoch has gone back. A static member that has left comes
// back from the beginning, also under another's id; and who, or what, has only half its
// tombstones is nowhere.
func (w *consumers) checkEpochs(t *rapid.T, c *consumer.Group) {
	now := [2]int32{c.Epoch, c.TargetEpoch}
	if w.group != nil && (now[0] < w.epochs[0] || now[1] < w.epochs[1] && c.HasTarget) {
		t.Fatalf("the epochs of the group and its target went back from %v to %v", w.epochs, now)
	}
	w.group, w.epochs = c, now
	before := maps.Clone(w.members)
	clear(w.members)
	for _, m := range c.Members {
		e := m.Now().Epoch
		if old, ok := before[m.ID]; ok && e < old && e != modern.EpochLeaveStatic && m.Current != nil && (m.Metadata.Instance == nil || e != 0) {
			t.Fatalf("the epoch of %s went back from %d to %d", m.ID, old, e)
		}
		w.members[m.ID] = e
	}
}

// checkClients says whether two members work on the same partition. Who was fenced has
// lost what it has, also if half of that was stored.
func (w *consumers) checkClients(t *rapid.T, c *consumer.Group) {
	works := map[consumer.Partition]string{}
	for _, cl := range w.clients {
		if m := c.Member(cl.id); m == nil || m.Current == nil || m.Now().Epoch == modern.EpochLeaveStatic || w.losses > 0 && !cl.heard {
			continue
		}
		for p := range cl.has {
			if other, ok := works[p]; ok {
				t.Fatalf("%s and %s both work on partition %d of %x", cl.id, other, p.Number, p.Topic)
			}
			works[p] = cl.id
			if c.Owners[p] == nil || c.Owners[p].ID != cl.id {
				t.Fatalf("%s works on partition %d of %x, and the coordinator does not know", cl.id, p.Number, p.Topic)
			}
		}
	}
	w.checkClassics(t, c, works)
}

// settle has no one want anything new. Before long everybody has what they are to
// have, all partitions are someone's, and heartbeats change nothing any more.
func (w *consumers) settle(t *rapid.T) {
	w.tear1 = -1
	for range 20 { // Long enough for static members that are away to be given up, and for patterns to be resolved.
		w.pass(t, 5*time.Second)
		w.round(t)
	}
	for range 6 {
		w.pass(t, 5*time.Second)
		w.round(t)
	}
	c := w.shard.consumer("g")
	if c == nil || c.Present == 0 {
		w.settleClassics(t)
		return
	}
	if c.StateName() != modern.StateStable {
		t.Fatalf("nothing has happened for long, and the group is %s", c.StateName())
	}
	w.pass(t, 5*time.Second)
	for _, cl := range w.clients {
		if cl.joined {
			w.sendBeat(t, cl, true)
			if w.records > 0 {
				t.Fatalf("a heartbeat of %s in a stable group has records", cl.id)
			}
		}
	}
	w.settleClassics(t)
	for _, topic := range c.FindTopics(w.image).Found {
		for n := range topic.Partitions {
			if c.Owners[consumer.Partition{Topic: topic.ID, Number: int32(n)}] == nil {
				t.Fatalf("nobody has partition %d of %s", n, topic.Name)
			}
		}
	}
}

// round has all tasks done, and all members send a heartbeat.
func (w *consumers) round(t *rapid.T) {
	for _, c := range w.clients {
		w.runTasks(t)
		if c.joined {
			w.sendBeat(t, c, true)
		}
	}
	w.runTasks(t)
	w.allAct(t)
}

func (w *consumers) runTasks(t *rapid.T) {
	for len(w.tasks) > 0 {
		w.runTask(t, 0)
	}
}

func (w *consumers) calm(t *rapid.T) {
	w.pass(t, 12*time.Hour)
	w.runTasks(t)
	w.pass(t, 12*time.Hour)
	if ids := w.shard.GroupIDs(); len(ids) > 0 || len(w.timers) != 1 || len(w.shard.Tasks) > 0 {
		t.Fatalf("left alone, groups %q stay with timers %v", ids, slices.Collect(maps.Keys(w.timers)))
	}
}
