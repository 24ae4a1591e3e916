package sim

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/coordinator/pump"
	"muster/internal/group"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/sim/seeds"
	"muster/internal/sim/shell"
)

// host is where a shell runs: a broker that leads, until it does no more.
type host struct {
	*shell.Shell
	w       *world
	current *coordinator // of the pump's life
	gone    bool
}

// Input implements shell.Host.
func (h *host) Input() machine.Input {
	return machine.Input{Now: h.w.Clock(), Random: h.w.fresh(), Image: h.w.topics.image, MaxBatch: h.w.plan.maxBatch}
}

// Do implements shell.Host.
func (h *host) Do(run func()) {
	if !h.gone {
		run()
	}
}

// Out implements shell.Host.
func (h *host) Out(_ uint64, out pump.Out) { h.current.letOut(out) }

// Lost implements shell.Host.
func (h *host) Lost() { h.current.lost() }

// Append implements shell.Host.
func (h *host) Append(a pump.Append) { h.current.send(a) }

// coordinator is one life of a host's pump, from its load to its end: the shard,
// and what the checker believes of it.
type coordinator struct {
	w       *world
	broker  *broker
	host    *host
	life    uint64 // of the pump
	epoch   int    // under which the log was opened
	config  group.Config
	loading bool
	zombie  bool // another has taken over
	void    bool // the log has lost what it believes in, and all it says may be wrong
	gone    bool

	shard   *group.Shard
	replica *group.Shard // what a replay of its records gives, durable or not
	timers  map[machine.TimerKey]machine.Timer
	open    map[machine.RequestID]*request // given to the shard, not answered by it
	held    map[machine.RequestID]held     // answered by it, not let out by the pump
	wire    []byte                         // that the shard's copy of the request is read from

	underWay *pendingAppend // the append under way
	appendAt time.Duration  // when it arrives
	entries  []*entry       // of steps whose records are not all in the log
	emitted  int            // records that steps have asked for
	durable  int            // how many of them are in the log
	notes    []int          // for each note that was not let out: so many records must be in the log

	offsets  *offsets // with what is not durable yet
	views    map[string]*view
	ended    map[string]int // as the log said when it was loaded
	fenced   map[place]map[string]bool
	quiet    map[memberOf]*quiet        // members that were loaded, and not heard of since
	silences map[memberOf]time.Duration // that are stored, durable or not
	tasks    map[uint64]*task           // under way
	asked    map[uint64]*asked          // questions to transaction coordinators that are not answered
}

// place is a static member's, from which member ids were fenced.
type place struct{ group, instance string }

// entry is what one step does, as far as the log is concerned.
type entry struct {
	originals []machine.Record
	records   []stored
	ends      []int // of its batches, among the originals
	writes    []offsetWrite
	ended     []string                   // groups that no longer exist
	upgraded  map[string]map[part]string // of groups that become consumer groups: what their members have
	replies   []held
	journal   []*journal.Entry
	durable   int // records that are in the log
	seq       uint64
}

// held is a reply on its way out.
type held struct {
	request *request
	msg     kmsg.Response
	wire    []byte       // at the time of its step
	emitted int          // records that must be in the log
	seq     uint64       // of the step
	life    int          // of the group, for the checks
	stable  bool         // the group was, after the step
	former  *coordinator // of a classic group that was a consumer group once: who has formed its generation, nil if unknown
	mixed   bool         // it was a consumer group in which others use the classic protocol
	old     bool         // the member's next heartbeat came before the answer to this one
}

// cause is what a step is given.
type cause struct {
	event   machine.Event
	request *request
	timer   *machine.TimerKey
	current bool // the timer is armed, and not a stale one
	asked   *asked
	groups  []string // that a marker, or an answer, is about
}

func newCoordinator(w *world, b *broker, h *host) *coordinator {
	return &coordinator{
		w: w, broker: b, host: h, life: h.Pump.Life(), loading: true, config: w.plan.config,
		timers: map[machine.TimerKey]machine.Timer{}, open: map[machine.RequestID]*request{}, held: map[machine.RequestID]held{},
		views: map[string]*view{}, fenced: map[place]map[string]bool{}, asked: map[uint64]*asked{}, tasks: map[uint64]*task{}, quiet: map[memberOf]*quiet{},
	}
}

// load replays the log, perhaps after a compaction of it.
func (c *coordinator) load() {
	w := c.w
	if w.Rand.IntN(2) == 0 {
		w.log.compact()
	}
	c.loading = false
	c.config = w.plan.config
	c.shard, c.replica = w.log.replay(c.config), w.log.replay(c.config)
	c.offsets = w.log.offsets.clone()
	c.offsets.loaded()
	w.Tracef("broker %d: loaded %d records, epoch %d", c.broker.id, len(w.log.records), c.epoch)
	w.Count("load")
	c.loadViews()
	c.host.Begin(c.life, &watched{c}, machine.Loaded{Epoch: int32(c.epoch)})
	w.promises.checkLoaded(c)
	c.host.Drain()
}

// watched is a core under observation: the pump steps it, and every step is
// checked.
type watched struct{ c *coordinator }

// Replay implements machine.Core.
func (x *watched) Replay(machine.Stored) {}

// ReleaseEffects implements machine.EffectsReleaser.
func (x *watched) ReleaseEffects() { x.c.shard.ReleaseEffects() }

// Step implements machine.Core.
func (x *watched) Step(in machine.Input) machine.Effects {
	why := cause{event: in.Event}
	switch e := in.Event.(type) {
	case machine.Request:
		why.request = x.c.open[e.ID]
	case machine.Sent:
		if why.asked = x.c.asked[e.ID]; why.asked != nil {
			why.request = why.asked.q
			delete(x.c.asked, e.ID)
		}
	case machine.TimerFired:
		why.timer, why.current = &e.Key, x.c.timers[e.Key].Seq == e.Seq
		if why.current {
			delete(x.c.timers, e.Key)
		}
	}
	return x.c.step(in, why)
}

func (c *coordinator) submit(q *request) {
	c.open[q.id] = q
	c.wire = q.msg.AppendTo(nil)
	msg := c.w.parse(q.ask.key, q.ask.version, c.wire)
	c.host.Request(machine.Request{ID: q.id, ClientID: q.from, Host: "10.0.0.1", Msg: msg})
}

// step gives the shard an event, and checks what it does with it.
func (c *coordinator) step(in machine.Input, why cause) machine.Effects {
	w := c.w
	if c.gone {
		w.Violated("the pump steps a core that it has dropped")
	}
	w.steps++
	wants := c.expect(why)
	why.groups = wants.groups
	fx := c.shard.Step(in)
	// The checks ask the shard itself, which uses its effects again.
	fx.Batches, fx.Replies = slices.Clone(fx.Batches), slices.Clone(fx.Replies)
	fx.Timers, fx.Notes, fx.Sends, fx.Tasks = slices.Clone(fx.Timers), slices.Clone(fx.Notes), slices.Clone(fx.Sends), slices.Clone(fx.Tasks)
	for i := range c.wire { // The runtime uses its buffers again.
		c.wire[i] = 0xaa
	}
	c.wire = nil
	if err := c.shard.CheckInvariants(); err != nil {
		w.Violated("invariant: %v", err)
	}
	e := &entry{replies: c.match(fx.Replies), journal: machine.NotesOf[*journal.Entry](fx.Notes), seq: w.steps}
	for i := range fx.Batches {
		fx.Batches[i].Records = slices.Clone(fx.Batches[i].Records)
		e.take(&fx.Batches[i])
	}
	c.record(e)
	c.checkSends(why, &wants, fx.Sends)
	c.takeTasks(why, fx.Tasks)
	c.check(why, wants, e)
	c.checkSilence(why, e)
	c.checkSuccessors(e)
	for i := range e.replies {
		e.replies[i].emitted, e.replies[i].seq = c.emitted, w.steps
		c.held[e.replies[i].request.id] = e.replies[i]
	}
	for range fx.Notes {
		c.notes = append(c.notes, c.emitted)
	}
	c.arm(fx.Timers)
	c.checkConsumerTimers(why)
	c.traceStep(why, e)
	if len(e.records) > 0 {
		c.entries = append(c.entries, e)
	}
	return fx
}

// match finds the requests that replies are for. Each is answered once.
func (c *coordinator) match(replies []machine.Reply) []held {
	var out []held
	for _, r := range replies {
		q := c.open[r.ID]
		if q == nil {
			c.w.Violated("request %d is answered that is not open: %s", r.ID, describeReply(r.Msg))
		}
		delete(c.open, r.ID)
		if r.Msg.GetVersion() != q.msg.GetVersion() || r.Msg.Key() != q.msg.Key() {
			c.w.Violated("request %s is answered by %T of version %d", q, r.Msg, r.Msg.GetVersion())
		}
		out = append(out, held{request: q, msg: r.Msg, wire: r.Msg.AppendTo(nil)})
	}
	return out
}

// record checks that a replay of the records so far gives the same state.
func (c *coordinator) record(e *entry) {
	for _, s := range e.records {
		c.replica.Replay(s.replayed(c.w))
	}
	c.emitted += len(e.records)
	if len(e.records) > 0 && c.replica.Digest() != c.shard.Digest() {
		c.w.Violated("replay of the records gives another state than the steps did")
	}
}

// letOut takes what the pump lets out.
func (c *coordinator) letOut(out pump.Out) {
	w := c.w
	for _, r := range out.Replies {
		c.release(r)
	}
	for range out.Notes {
		if len(c.notes) == 0 || c.notes[0] > c.durable {
			w.Violated("a note tells of what is not durable, or twice")
		}
		c.notes = c.notes[1:]
	}
	for _, m := range out.Sends {
		w.question(c, m)
	}
	for _, t := range out.Tasks {
		c.runTask(t)
	}
}

// release sends a reply out that the pump has let go.
func (c *coordinator) release(r machine.Reply) {
	h, ok := c.held[r.ID]
	if !ok {
		c.w.Violated("request %d is answered by the pump, and not by the core, or twice", r.ID)
	}
	delete(c.held, r.ID)
	if h.emitted > c.durable {
		c.w.Violated("%s is answered with %d records not durable", h.request, h.emitted-c.durable)
	}
	if !bytes.Equal(r.Msg.AppendTo(nil), h.wire) {
		c.w.Violated("the answer to %s changed after its step", h.request)
	}
	if !c.void {
		c.w.promises.released(c, &h)
	}
	c.w.respond(h.request, h.wire, c.zombie, h.life)
}

// lost is the end of a life by an append that failed. A broker that still leads
// begins another.
func (c *coordinator) lost() {
	w := c.w
	c.fail()
	if c.zombie {
		c.leave()
		return
	}
	w.Tracef("broker %d: loads again", c.broker.id)
	c.gone = true
	w.begin(newCoordinator(w, c.broker, c.host), func(next *coordinator) {
		if next.zombie {
			return // The log belongs to another; nothing can be read under this epoch.
		}
		w.log.epoch++
		next.epoch = w.log.epoch
		next.load()
	})
}

// fail tells everybody who waits to go elsewhere.
func (c *coordinator) fail() {
	w := c.w
	for _, id := range slices.Sorted(maps.Keys(c.held)) {
		w.respond(c.held[id].request, errorReply(c.held[id].request.msg, kerr.NotCoordinator), c.zombie, 0)
	}
	for _, id := range slices.Sorted(maps.Keys(c.open)) {
		w.respond(c.open[id], errorReply(c.open[id].msg, kerr.NotCoordinator), c.zombie, 0)
		w.Count("parked request answered by NOT_COORDINATOR")
	}
	c.open, c.held = nil, nil
}

// resign ends a coordinator that learns that another broker leads now.
func (c *coordinator) resign() {
	c.fail()
	c.leave()
}

// leave ends the coordinator and its host.
func (c *coordinator) leave() {
	c.gone, c.host.gone = true, true
	c.host.Pump.End()
	c.open, c.held = nil, nil
}

// arm notes which timers are armed. They may fire once more after they were
// cancelled.
func (c *coordinator) arm(timers []machine.Timer) {
	w := c.w
	for _, t := range timers {
		if old, ok := c.timers[t.Key]; ok && w.Chance(w.faults().staleTimer) {
			w.At(old.At.Sub(seeds.Start), func() { c.fireStale(old) })
		}
		if t.Cancel {
			delete(c.timers, t.Key)
			continue
		}
		if t.At.Before(w.Clock()) {
			w.Violated("timer %v is armed for the past", t)
		}
		c.timers[t.Key] = t
	}
}

func (c *coordinator) fireStale(t machine.Timer) {
	if c.gone || c.timers[t.Key].Seq == t.Seq {
		return
	}
	c.w.Count("stale timer")
	c.host.Tell(machine.TimerFired{Key: t.Key, Seq: t.Seq})
}

func (w *world) fresh() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:], w.Rand.Uint64())
	binary.BigEndian.PutUint64(b[8:], w.Rand.Uint64())
	return b
}
