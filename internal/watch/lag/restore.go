package lag

import (
	"time"

	"muster/internal/watch/history"
)

// Restore takes in what was written to __group_history before a restart, of the groups
// that there are: how far they were behind then. Records may come while passes are made;
// those of a partition come in the order in which they were written. What a pass has
// seen for itself stands.
func (t *Tracker) Restore(r *history.Record) {
	at := time.UnixMilli(r.Time)
	if t.pass == 0 || at.Before(t.start) || at.After(t.time(t.now)) {
		return
	}
	then := tick(at.Sub(t.start) / tenth)
	for i := range r.Groups {
		h := &r.Groups[i]
		g := t.groups[h.Name]
		switch {
		case g == nil:
		case h.Deleted():
			if g.ring != nil {
				g.ring.forget(then) // Another group of that name.
			}
		default:
			if g.ring == nil {
				t.own(g)
				t.groupMoved(g, t.now)
			}
			if g.ring != nil { // There was room.
				g.ring.past(then, h.Lag, h.Age)
			}
		}
	}
}

// past notes the lag at a time before the newest point, where nothing is known.
func (r *groupRing) past(at tick, lag, age int64) {
	for i := range r.levels {
		r.levels[i].past(uint32(at/levelStep[i])+1, shorten(lag), shorten(age))
	}
}

func (l *level) past(slot uint32, lag, age short) {
	switch i := slot % levelPoints; {
	case slot > l.slot:
		l.add(slot, lag, age)
	case slot+levelPoints > l.slot && l.lag[i] == gap:
		l.lag[i], l.age[i] = lag, age
	}
}

// forget forgets the points up to a time.
func (r *groupRing) forget(upTo tick) {
	for i := range r.levels {
		l := &r.levels[i]
		for s := l.slot - min(l.slot, levelPoints) + 1; s <= min(l.slot, uint32(upTo/levelStep[i])+1); s++ {
			l.lag[s%levelPoints], l.age[s%levelPoints] = gap, gap
		}
	}
}
