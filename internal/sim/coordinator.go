package sim

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
)

// coordinator is the model of the shell around a shard: from its load to its
// end, under one epoch.
type coordinator struct {
	w       *world
	broker  *broker
	epoch   int
	config  group.Config
	loading bool
	zombie  bool // another has taken over
	gone    bool

	shard   *group.Shard
	replica *group.Shard // what a replay of its records gives, durable or not
	timers  map[group.TimerKey]uint64
	open    map[group.RequestID]*request // given to the shard, not answered by it

	entries  []*entry      // appended and not yet durable, in order
	appendAt time.Duration // when the last of them will be
	emitted  int           // records that steps have asked for
	durable  int           // how many of them are
	steps    uint64

	offsets *offsets // with what is not durable yet
	views   map[string]*view
	ended   map[string]int // as the log said when it was loaded
	fenced  map[place]map[string]bool
}

// place is a static member's, from which member ids were fenced.
type place struct{ group, instance string }

// entry is what one step appends, and the replies that wait for it.
type entry struct {
	originals []group.Record
	records   []stored
	writes    []offsetWrite
	ended     []string // groups that are no more
	replies   []held
	journal   []group.Entry
	emitted   int // records up to and with these
}

// held is a reply on its way out.
type held struct {
	request *request
	msg     kmsg.Response
	wire    []byte // at the time of its step
	emitted int    // records that must be durable
	life    int    // of the group, for the checks
	stable  bool   // the group was, after the step
}

// cause is what a step is given.
type cause struct {
	event   group.Event
	request *request
	wire    []byte // that the shard's copy of the request is read from
	timer   *group.TimerKey
	current bool // the timer is armed, and not a stale one
}

func newCoordinator(w *world, b *broker, epoch int) *coordinator {
	return &coordinator{
		w: w, broker: b, epoch: epoch, loading: true, config: w.plan.config,
		timers: map[group.TimerKey]uint64{}, open: map[group.RequestID]*request{}, views: map[string]*view{}, fenced: map[place]map[string]bool{},
	}
}

// load replays the log, perhaps after a compaction of it.
func (c *coordinator) load() {
	w := c.w
	if w.rand.IntN(2) == 0 {
		w.log.compact()
	}
	c.loading = false
	c.config = w.plan.config
	c.shard, c.replica = w.log.replay(c.config), w.log.replay(c.config)
	c.offsets = w.log.offsets.clone()
	w.tracef("broker %d: loaded %d records, epoch %d", c.broker.id, len(w.log.records), c.epoch)
	w.count("load")
	c.loadViews()
	c.step(cause{event: group.Loaded{}})
	w.promises.checkLoaded(c)
}

func (c *coordinator) submit(q *request) {
	c.open[q.id] = q
	wire := q.msg.AppendTo(nil)
	msg := c.w.parse(q.ask.key, q.ask.version, wire)
	c.step(cause{event: group.Request{ID: q.id, ClientID: q.from, Host: "10.0.0.1", Msg: msg}, request: q, wire: wire})
}

// step gives the shard an event, checks what it does with it, and sees to that.
func (c *coordinator) step(why cause) {
	w := c.w
	c.steps++
	wants := c.expect(why)
	fx := c.shard.Step(group.Input{Now: w.clock(), Fresh: w.fresh(), Event: why.event})
	for i := range why.wire { // The shell uses its buffers again.
		why.wire[i] = 0xaa
	}
	if err := c.shard.CheckInvariants(); err != nil {
		w.violated("invariant: %v", err)
	}
	e := &entry{originals: fx.Records, replies: c.match(fx.Replies), journal: fx.Journal}
	c.record(e)
	c.check(why, wants, e)
	c.checkSuccessors(e)
	for i := range e.replies {
		e.replies[i].emitted = c.emitted
	}
	c.arm(fx.Timers)
	c.traceStep(why, e)
	c.enqueue(e)
}

// match finds the requests that replies are for. Each is answered once.
func (c *coordinator) match(replies []group.Reply) []held {
	var out []held
	for _, r := range replies {
		q := c.open[r.ID]
		if q == nil {
			c.w.violated("request %d is answered that is not open: %s", r.ID, describeReply(r.Msg))
		}
		delete(c.open, r.ID)
		if r.Msg.GetVersion() != q.msg.GetVersion() || r.Msg.Key() != q.msg.Key() {
			c.w.violated("request %s is answered by %T of version %d", q, r.Msg, r.Msg.GetVersion())
		}
		out = append(out, held{request: q, msg: r.Msg, wire: r.Msg.AppendTo(nil)})
	}
	return out
}

// record checks that a replay of the records so far gives the same state.
func (c *coordinator) record(e *entry) {
	for _, r := range e.originals {
		s := encode(r)
		e.records = append(e.records, s)
		c.replica.Replay(c.w.decode(s))
	}
	c.emitted += len(e.records)
	e.emitted = c.emitted
	if len(e.records) > 0 && c.replica.Digest() != c.shard.Digest() {
		c.w.violated("replay of the records gives another state than the steps did")
	}
}

// enqueue appends records. Replies wait for theirs and for all before them.
func (c *coordinator) enqueue(e *entry) {
	w := c.w
	switch {
	case len(e.records) > 0:
		c.entries = append(c.entries, e)
		w.moment(momentAppend)
		d := w.about(w.plan.append) + 100*time.Microsecond
		if w.chance(w.faults().appendSlow) {
			d = w.between(100*time.Millisecond, 3*time.Second)
			w.count("slow append")
		}
		c.appendAt = max(c.appendAt, w.now+d)
		w.at(c.appendAt, func() { c.appended(e) })
	case len(c.entries) > 0:
		last := c.entries[len(c.entries)-1]
		last.replies = append(last.replies, e.replies...)
	default:
		c.release(e.replies)
	}
}

// appended is the end of an append: it is refused if another broker has taken
// over, and may fail, also after it was stored.
func (c *coordinator) appended(e *entry) {
	w := c.w
	if c.gone {
		return
	}
	switch {
	case c.epoch != w.log.epoch:
		w.tracef("broker %d: append refused, epoch %d is over", c.broker.id, c.epoch)
		w.count("append fenced")
		c.resign()
	case w.chance(w.faults().appendFails) || w.failNext && !w.calm:
		w.failNext = false
		w.count("append failed")
		if w.rand.IntN(2) == 0 {
			w.log.append(e)
			w.count("append failed but durable")
		}
		w.tracef("broker %d: append failed", c.broker.id)
		c.resign()
		w.startCoordinator(c.broker)
	default:
		w.log.append(e)
		c.entries = c.entries[1:]
		c.durable = e.emitted
		c.release(e.replies)
	}
}

// release sends replies out.
func (c *coordinator) release(replies []held) {
	for i := range replies {
		r := &replies[i]
		if r.emitted > c.durable {
			c.w.violated("%s is answered with %d records not durable", r.request, r.emitted-c.durable)
		}
		if !bytes.Equal(r.msg.AppendTo(nil), r.wire) {
			c.w.violated("the answer to %s changed after its step", r.request)
		}
		c.w.promises.released(c, r)
		c.w.respond(r.request, r.wire, c.zombie, r.life)
	}
}

// resign drops the shard: everybody who waits is sent elsewhere.
func (c *coordinator) resign() {
	w := c.w
	for _, e := range c.entries {
		for i := range e.replies {
			w.respond(e.replies[i].request, errorReply(e.replies[i].request.msg, codeNotCoordinator), c.zombie, 0)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.open)) {
		w.respond(c.open[id], errorReply(c.open[id].msg, codeNotCoordinator), c.zombie, 0)
		w.count("parked request answered by NOT_COORDINATOR")
	}
	c.leave()
}

// leave ends the coordinator.
func (c *coordinator) leave() {
	c.gone = true
	c.entries, c.open = nil, nil
}

// arm sets timers. They may fire late, and once more after they were cancelled.
func (c *coordinator) arm(timers []group.Timer) {
	w := c.w
	for _, t := range timers {
		if t.Cancel {
			delete(c.timers, t.Key)
			continue
		}
		if t.At.Before(w.clock()) {
			w.violated("timer %v is armed for the past", t)
		}
		c.timers[t.Key] = t.Seq
		at := t.At.Sub(start) + w.about(time.Millisecond)
		if w.chance(w.faults().lateTimer) {
			at += w.between(0, maxLate/2)
		}
		w.at(at, func() { c.fire(t) })
	}
}

func (c *coordinator) fire(t group.Timer) {
	current := c.timers[t.Key] == t.Seq
	if c.gone || !current && !c.w.chance(c.w.faults().staleTimer) {
		return
	}
	if current {
		delete(c.timers, t.Key)
	} else {
		c.w.count("stale timer")
	}
	c.step(cause{event: group.TimerFired{Key: t.Key, Seq: t.Seq}, timer: &t.Key, current: current})
}

func (w *world) fresh() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:], w.rand.Uint64())
	binary.BigEndian.PutUint64(b[8:], w.rand.Uint64())
	return b
}
