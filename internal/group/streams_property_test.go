package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/modern"
	"muster/internal/group/streams"
	"muster/internal/harness"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// streamsWorld is a streams group with clients that come and go, whose answers are lost, on a
// broker that crashes, with topics that come, grow and go.
type streamsWorld struct {
	t       *testing.T
	rng     *rand.Rand
	shard   *Shard
	cfg     Config
	now     time.Time
	image   *metadata.Image
	log     []machine.Batch
	timers  map[machine.TimerKey]machine.Timer
	tasks   []machine.Task
	sends   []machine.Send
	topics  map[string]int
	clients []*streamsClient
	epoch   int32
	id      int
	seed    uint64
	calm    bool
}

// leaves is the request by which a client leaves, whose answer it does not wait for.
const leaves = 999

// streamsClient is a thread of an application. It has what it was told, until it is told that it
// is fenced.
type streamsClient struct {
	id, process string
	epoch       int32 // as it was told, 0 for one that has yet to join
	active      []streams.TaskID
	tells       bool // it has let go of something that it has not told of
	tasks       [3][]kmsg.TaskIDs
}

func newStreamsWorld(t *testing.T, seed uint64) *streamsWorld {
	w := &streamsWorld{t: t, rng: rand.New(rand.NewPCG(seed, 31)), seed: seed, cfg: DefaultConfig(), now: time.Unix(1_700_000_000, 0), topics: map[string]int{"a": 3}, timers: map[machine.TimerKey]machine.Timer{}}
	w.cfg.Streams.Standbys, w.cfg.Streams.AtOnce = w.rng.IntN(3), []int{0, 0, 2}[w.rng.IntN(3)]
	w.setImage()
	w.shard = NewShard(w.cfg)
	w.step(machine.Loaded{Epoch: 1})
	for i := range 2 + w.rng.IntN(4) {
		w.clients = append(w.clients, &streamsClient{id: fmt.Sprintf("m%d", i), process: fmt.Sprint(w.rng.IntN(3))})
	}
	return w
}

func (w *streamsWorld) setImage() {
	ids := map[string]byte{}
	for name := range w.topics {
		ids[name] = name[0]
	}
	w.image = withPartitions(imageOf(ids), w.topics)
}

func (w *streamsWorld) step(e machine.Event) machine.Effects {
	fx := w.shard.Step(machine.Input{Now: w.now, Image: w.image, MaxBatch: 1 << 20, Event: e})
	w.log = append(w.log, cloneBatches(fx.Batches)...)
	harness.Arm(w.timers, fx.Timers)
	w.tasks, w.sends = append(w.tasks, fx.Tasks...), append(w.sends, fx.Sends...)
	for _, r := range fx.Replies {
		if resp, ok := r.Msg.(*kmsg.StreamsGroupHeartbeatResponse); ok && int(r.ID)%1000 != leaves && (w.calm || w.rng.IntN(8) > 0) { // Else it is lost.
			w.hear(w.clients[int(r.ID)%1000], resp)
		}
	}
	if err := w.shard.CheckInvariants(); err != nil {
		w.t.Fatalf("seed %d: after %T: %v", w.seed, e, err)
	}
	return fx
}

// hear has a client do what it is told, and checks that no one else works on its tasks.
func (w *streamsWorld) hear(c *streamsClient, m *kmsg.StreamsGroupHeartbeatResponse) {
	if m.ErrorCode != 0 {
		c.epoch, c.active, c.tasks = 0, nil, [3][]kmsg.TaskIDs{}
		return
	}
	if m.MemberEpoch < c.epoch {
		w.t.Fatalf("seed %d: %s went back from epoch %d to %d", w.seed, c.id, c.epoch, m.MemberEpoch)
	}
	if c.epoch = m.MemberEpoch; m.ActiveTasks == nil {
		return
	}
	c.tasks, c.active, c.tells = [3][]kmsg.TaskIDs{m.ActiveTasks, m.StandbyTasks, m.WarmupTasks}, nil, true
	for _, t := range m.ActiveTasks {
		for _, n := range t.Partitions {
			c.active = append(c.active, streams.TaskID{Subtopology: t.SubtopologyID, Partition: n})
		}
	}
	for _, other := range w.clients {
		for _, t := range c.active {
			if other != c && w.isMember(other) && slices.Contains(other.active, t) {
				w.t.Fatalf("seed %d: %s and %s both work on %v", w.seed, c.id, other.id, t)
			}
		}
	}
}

// isMember says whether a client is not fenced without knowing.
func (w *streamsWorld) isMember(c *streamsClient) bool {
	g := w.shard.streams("g")
	return g != nil && g.Member(c.id) != nil && g.Member(c.id).Now().Epoch >= c.epoch && c.epoch > 0
}

func (w *streamsWorld) beat(i int) {
	c := w.clients[i]
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = "g", c.id, c.epoch, -1
	switch {
	case c.epoch == 0:
		t := kmsg.NewStreamsGroupHeartbeatRequestTopology()
		t.Subtopologies = []kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{parseSubtopology("0: a > r"), parseSubtopology("1: r? / l")}
		c.active = nil
		req.Topology, req.ProcessID, req.RebalanceTimeoutMillis = &t, &c.process, 20_000
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
	case c.tells || w.rng.IntN(4) == 0:
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = emptyIDs(c.tasks[0]), emptyIDs(c.tasks[1]), emptyIDs(c.tasks[2])
		c.tells = false
	}
	w.id++
	w.step(machine.Request{ID: machine.RequestID(w.id*1000 + i), ClientID: c.id, Host: "h", Msg: req})
}

func emptyIDs(list []kmsg.TaskIDs) []kmsg.TaskIDs { return append([]kmsg.TaskIDs{}, list...) }

// pass lets time pass, and what is due happen.
func (w *streamsWorld) pass(d time.Duration) {
	for end := w.now.Add(d); ; {
		var first *machine.Timer
		for _, t := range w.timers {
			if !t.At.After(end) && (first == nil || t.At.Before(first.At) || t.At.Equal(first.At) && t.Seq < first.Seq) {
				first = &t
			}
		}
		if first == nil {
			w.now = end
			return
		}
		delete(w.timers, first.Key)
		w.now = first.At
		w.step(machine.TimerFired{Key: first.Key, Seq: first.Seq})
	}
}

// settleOutside does what was asked of others.
func (w *streamsWorld) settleOutside() {
	for len(w.tasks) > 0 {
		t := w.tasks[0]
		w.tasks = w.tasks[1:]
		w.step(machine.TaskDone{ID: t.ID, Result: t.Run()})
	}
	for len(w.sends) > 0 {
		q := w.sends[0]
		w.sends = w.sends[1:]
		req := q.Msg.(*kmsg.CreateTopicsRequest)
		for _, t := range req.Topics {
			w.topics[t.Topic] = int(t.NumPartitions)
		}
		w.setImage()
		w.step(machine.Sent{ID: q.ID, Msg: req.ResponseKind()})
	}
}

// crash has another broker load the log, perhaps compacted.
func (w *streamsWorld) crash() {
	log := w.log
	if w.rng.IntN(2) == 0 {
		log = compacted(log, w.rng.IntN(len(log)+1), w.rng.IntN(2) == 0)
	}
	before := w.shard.Digest()
	w.shard = replayed(log, w.cfg)
	if w.shard.Digest() != before {
		w.t.Fatalf("seed %d: the log does not say what the shard knew", w.seed)
	}
	clear(w.timers)
	w.tasks, w.sends = nil, nil
	w.epoch++
	w.step(machine.Loaded{Epoch: 1 + w.epoch})
}

func (w *streamsWorld) act() {
	switch w.rng.IntN(20) {
	case 0:
		w.crash()
	case 1:
		w.pass(time.Duration(w.rng.IntN(30)) * time.Second)
	case 2:
		if delete(w.topics, []string{"a", "r", "l"}[w.rng.IntN(3)]); w.rng.IntN(3) > 0 {
			w.topics["a"] = 1 + w.rng.IntN(5)
		}
		w.setImage()
	case 3:
		w.cfg.Streams.Standbys = w.rng.IntN(3)
		w.step(Configured{Config: w.cfg})
	case 4:
		c := w.clients[w.rng.IntN(len(w.clients))]
		req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
		req.Group, req.MemberID, req.MemberEpoch = "g", c.id, modern.EpochLeave
		c.epoch, c.active = 0, nil
		w.step(machine.Request{ID: leaves, ClientID: c.id, Host: "h", Msg: req})
		c.process = fmt.Sprint(w.rng.IntN(3))
	case 5, 6:
		w.settleOutside()
	case 7: // A thread restarts, in another process perhaps.
		c := w.clients[w.rng.IntN(len(w.clients))]
		c.epoch, c.active, c.process = 0, nil, fmt.Sprint(w.rng.IntN(3))
	default:
		w.pass(time.Duration(w.rng.IntN(3)) * time.Second)
		w.beat(w.rng.IntN(len(w.clients)))
	}
}

// Whatever happens no task is worked on twice, epochs do not go back, the log says what the
// shard knows, and when it is quiet the group becomes Stable, with its topics made.
func TestAStreamsGroupKeepsItsInvariantsAndSettles(t *testing.T) {
	for seed := range uint64(300) {
		w := newStreamsWorld(t, seed)
		for range 150 {
			w.act()
		}
		w.settleOutside() // Topics that are made too late have the wrong number for good.
		w.calm = true
		w.topics["a"] = 4
		delete(w.topics, "r")
		delete(w.topics, "l")
		w.setImage()
		for range 60 {
			w.settleOutside()
			w.pass(time.Second)
			for i := range w.clients {
				w.beat(i)
			}
		}
		if g := w.shard.streams("g"); g == nil || g.StateName() != modern.StateStable || w.topics["l"] != 4 {
			w.t.Fatalf("seed %d: the group has not become Stable: %v", seed, w.shard.Groups["g"].StateName())
		}
	}
}
