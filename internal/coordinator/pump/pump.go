// Package pump stands between a core and its log, and is as pure as the core:
// data in, data out, without lock, goroutine or clock. The runtime in package
// coordinator wraps it for a broker; the simulator runs this very code over a log
// that fails.
//
//	event ─→ core.Step ─┬─ batches ─→ queue ─→ Append, one under way ─→ durable
//	                    ├─ replies, sends, notes ─→ held until then
//	                    └─ timers, tasks ─→ at once
//
// While an append is under way, the batches of further steps queue up and are
// merged into the next one (group commit). The runtime decides when that one
// begins. What a step lets out, even a reply without records, waits for all records
// before it: no one reads what is not durable.
//
// A pump has lives. An append that fails ends one: the core has state that the
// log lacks, so it is dropped with all that waits, and a new core is loaded.
// What comes from an earlier life (the outcome of an append, an answer, the
// result of a task) is recognised by its number and ignored.
package pump

import (
	"time"

	"muster/internal/machine"
)

// phase is where a pump is in its life.
type phase int8

const (
	loading phase = iota
	active
	ended
)

// maxRecords and maxBytes bound an append of records that were queued together;
// what exceeds them makes several appends in a row.
const (
	maxRecords = 10_000
	maxBytes   = 1 << 20
)

// Pump carries one core. The zero value is not ready: see New.
type Pump struct {
	core machine.Core
	// releaseEffects is the core's, nil if it has none.
	releaseEffects func()
	rescue         func(panicked any) // nil to let a panic of the core go on
	life           uint64
	phase          phase
	timers         timers
	later          []machine.Event // that came while it loaded

	queue    []queued // asked for, not yet under way
	under    queued   // the append under way
	busy     bool     // there is one
	asked    uint64   // records that steps have asked for in this life
	durable  uint64   // how many of them are durable
	maxBatch int      // as of the last input

	replies held[machine.Reply]
	sends   held[machine.Send]
	notes   held[machine.Note]
	out     Out
}

// queued is a batch that waits for its append, or is under way.
type queued struct {
	machine.Batch
	bytes int
	tags  []tag
}

// tag is where in a batch the core wants to know the offset of.
type tag struct {
	index int
	tag   uint64
}

// Out is what the runtime is to do now.
type Out struct {
	Replies []machine.Reply
	Sends   []machine.Send
	Tasks   []machine.Task
	Notes   []machine.Note
	// Lost says that the life is over: everybody who waits is to be told, and a
	// core to be loaded for the life that Life returns now.
	Lost bool
}

// Append is one record batch to append. Its outcome belongs to Appended.
type Append struct {
	Life uint64
	machine.Batch
}

// New returns a pump that wants a core to be loaded for its first life.
func New() *Pump { return &Pump{life: 1} }

// Life returns the number of the current life.
func (p *Pump) Life() uint64 { return p.life }

// Active says that requests are handled.
func (p *Pump) Active() bool { return p.phase == active }

// Loading says that a core is to be loaded.
func (p *Pump) Loading() bool { return p.phase == loading }

// Next returns when Fire is to be called, the zero time for never.
func (p *Pump) Next() time.Time { return p.timers.next() }

// Drain returns what is to be done. It may be used until Drained, which must be
// called before anything else is.
func (p *Pump) Drain() Out { return p.out }

// Drained lets go of what Drain returned, now that it is done. The answer to a request
// for everything would else be kept until the shard has something to do again.
func (p *Pump) Drained() {
	p.out = Out{
		Replies: again(p.out.Replies), Sends: again(p.out.Sends), Tasks: again(p.out.Tasks),
		Notes: again(p.out.Notes),
	}
}

// Begin begins a life with a core that has replayed the log, unless the life
// that it was loaded for is over.
func (p *Pump) Begin(life uint64, core machine.Core, loaded machine.Loaded, in machine.Input) bool {
	if life != p.life || p.phase != loading {
		return false
	}
	p.core, p.phase = core, active
	if r, ok := core.(machine.EffectsReleaser); ok {
		p.releaseEffects = r.ReleaseEffects
	}
	p.step(in, loaded)
	for _, e := range p.later {
		p.step(in, e)
	}
	p.later = nil
	return true
}

// Request has a request handled; false says that no core is loaded.
func (p *Pump) Request(in machine.Input, r machine.Request) bool {
	if p.phase != active {
		return false
	}
	p.step(in, r)
	return true
}

// Tell has an event handled that is about everybody, after the load if there is
// one. A load goes by the newest topics in any case.
func (p *Pump) Tell(in machine.Input, e machine.Event) {
	switch _, topics := e.(machine.TopicsChanged); {
	case p.phase == active:
		p.step(in, e)
	case p.phase == loading && !topics:
		p.later = append(p.later, e)
	}
}

// Weight is how many bytes the core holds of what clients say of themselves.
func (p *Pump) Weight() int64 {
	if w, ok := p.core.(machine.Weighed); ok {
		return w.Weight()
	}
	return 0
}

// Fire has the timers handled whose time has come.
func (p *Pump) Fire(in machine.Input) {
	for p.phase == active {
		t, ok := p.timers.due(in.Now)
		if !ok {
			return
		}
		p.step(in, machine.TimerFired{Key: t.Key, Seq: t.Seq})
	}
}

// Sent has the outcome of a send handled.
func (p *Pump) Sent(life uint64, in machine.Input, s machine.Sent) { p.result(life, in, s) }

// TaskDone has the result of a task handled.
func (p *Pump) TaskDone(life uint64, in machine.Input, d machine.TaskDone) { p.result(life, in, d) }

func (p *Pump) result(life uint64, in machine.Input, e machine.Event) {
	if life == p.life && p.phase == active {
		p.step(in, e)
	}
}

// Appended takes the outcome of an append: where its first record is, or that it
// failed, which leaves open whether it is stored.
func (p *Pump) Appended(life uint64, in machine.Input, base int64, failed bool) {
	if life != p.life || p.phase != active || !p.busy {
		return
	}
	if failed {
		p.lose()
		return
	}
	done := p.under
	p.under, p.busy, p.maxBatch = queued{}, false, in.MaxBatch
	p.durable += uint64(max(len(done.Records), 1))
	p.release()
	for _, t := range done.tags {
		p.step(in, machine.Appended{Tag: t.tag, Offset: base + int64(t.index)})
	}
}

// End ends the pump. It is the runtime that tells those who wait.
func (p *Pump) End() {
	p.drop()
	p.phase = ended
}

// Reload ends a life whose log may have lost what the core was told is durable.
func (p *Pump) Reload() {
	if p.phase == active {
		p.lose()
	}
}

// lose ends a life whose core has state that the log lacks.
func (p *Pump) lose() {
	p.drop()
	p.phase = loading
	p.life++
	p.out.Lost = true
}

// drop forgets the core and all that waits.
func (p *Pump) drop() {
	*p = Pump{life: p.life, later: p.later, rescue: p.rescue}
}

// Rescue has a panic of the core lose it, as a failed append does, and told. Otherwise it
// goes on.
func (p *Pump) Rescue(told func(panicked any)) { p.rescue = told }

func (p *Pump) rescued() {
	if v := recover(); v != nil {
		p.rescue(v)
		p.lose()
	}
}

// step gives the core an event and takes in its effects.
func (p *Pump) step(in machine.Input, e machine.Event) {
	if p.core == nil {
		return // It has just been lost.
	}
	if p.rescue != nil {
		defer p.rescued()
	}
	in.Event = e
	p.maxBatch = in.MaxBatch
	fx := p.core.Step(in)
	for _, t := range fx.Timers {
		p.timers.set(t)
	}
	for i := range fx.Batches {
		p.enqueue(&fx.Batches[i])
	}
	p.out.Tasks = append(p.out.Tasks, fx.Tasks...)
	if p.asked == p.durable {
		p.out.Replies = append(p.out.Replies, fx.Replies...)
		p.out.Sends = append(p.out.Sends, fx.Sends...)
		p.out.Notes = append(p.out.Notes, fx.Notes...)
	} else {
		p.replies.hold(p.asked, fx.Replies)
		p.sends.hold(p.asked, fx.Sends)
		p.notes.hold(p.asked, fx.Notes)
	}
	if p.releaseEffects != nil {
		p.releaseEffects()
	}
}

// release lets out what waited for records that are durable now.
func (p *Pump) release() {
	p.out.Replies = p.replies.release(p.durable, p.out.Replies)
	p.out.Sends = p.sends.release(p.durable, p.out.Sends)
	p.out.Notes = p.notes.release(p.durable, p.out.Notes)
}
