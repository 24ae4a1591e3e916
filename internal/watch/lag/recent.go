package lag

// recentMinutes is how many points Recent has at most: what the finest level of a ring
// holds, a point for each minute.
const recentMinutes = levelPoints * step / minute

// Unseen stands among recent points for a minute of which nothing is known.
const Unseen = -1

// Recent returns how many seconds a group was behind in each of the last thirty minutes,
// at most, the oldest first and the present minute last; Unseen where nothing is known.
// It is what a list shows of a group, so it is made of the ring without the times, and
// begins with the first minute that is known.
func (t *Tracker) Recent(name string) []float64 {
	g := t.groups[name]
	if g == nil || g.ring == nil {
		return nil
	}
	var most [recentMinutes]short
	for i := range most {
		most[i] = gap
	}
	l := &g.ring.levels[0]
	now := t.now / minute
	first := len(most)
	for s := l.slot - min(l.slot, levelPoints) + 1; s <= l.slot; s++ {
		at, age := tick(s-1)*step/minute, l.age[s%levelPoints]
		if age == gap || at > now || now-at >= recentMinutes {
			continue
		}
		i := len(most) - 1 - int(now-at)
		if first = min(first, i); most[i] == gap || age > most[i] {
			most[i] = age
		}
	}
	out := make([]float64, 0, recentMinutes)
	for _, age := range most[first:] {
		if age == gap {
			out = append(out, Unseen)
		} else {
			out = append(out, seconds(age))
		}
	}
	return out
}
