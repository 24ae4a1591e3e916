package seeds

import "time"

// cause is the event that happens, and what has come of it so far. Each event has a
// chance of its own, which depends on nothing but the event that caused it: so if one
// is left out, those that do not follow from it stay as they are.
type cause struct {
	id       uint64
	children uint64
	faults   uint64
	resumed  uint64 // how often it went on after others
}

// next is the id of the next event that the current one causes.
func (w *World) next() uint64 {
	w.cause.children++
	return mix(w.cause.id, w.cause.children)
}

func (w *World) enter(c cause) {
	w.cause = c
	w.source.Seed(mix(c.id, ^c.resumed), w.salt)
}

// within does something as the event of that id.
func (w *World) within(id uint64, run func()) {
	before := w.cause
	w.enter(cause{id: id})
	run()
	before.resumed++
	w.enter(before)
}

// Apart does something now, as an event of its own: what it draws changes nothing for
// what comes after it.
func (w *World) Apart(run func()) { w.within(w.next(), run) }

// mix is the finalizer of SplitMix64, over both.
func mix(a, b uint64) uint64 {
	x := a ^ b*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fault is something that goes wrong, or that a run could do without: it has the same
// name in all runs of a seed in which it happens.
type fault uint32

// cut is what is left out of a run.
type cut struct {
	faults map[fault]bool // that happen all the same; nil if none is left out
	chaos  time.Duration  // how long the first phase takes, 0 for as long as the seed says
	hurry  int            // so many times earlier comes what happens again and again; 0 and 1 for when the seed says
}

// happens says whether something that has been decided on happens.
func (w *World) happens() bool {
	w.cause.faults++
	f := fault(mix(^w.cause.id, w.cause.faults))
	if w.cut.faults != nil && !w.cut.faults[f] {
		return false
	}
	w.chosen = append(w.chosen, f)
	return true
}

// Cast is how many of those in a plan take part.
func (w *World) Cast(planned, least int) int {
	n := min(planned, least)
	for range planned - n {
		if w.happens() {
			n++
		}
	}
	return n
}

// Chaos is how long the first phase takes.
func (w *World) Chaos(planned time.Duration) time.Duration {
	if w.chaos = planned; w.cut.chaos > 0 {
		w.chaos = min(planned, w.cut.chaos)
	}
	return w.chaos
}
