package metrics

import "time"

// stay is for how long who is in stays in, so that series do not come and go.
const stay = time.Hour

// level is how much is exported of a topic or a group.
type level uint8

const (
	counted level = iota // It is only counted.
	whole                // What is of all of it.
	parted               // Also what is of each of its partitions.
)

// claim is a topic or a group that wants to be exported.
type claim struct {
	name   string
	first  bool // It comes before those that are not.
	whole  int  // How many series it has as a whole,
	parts  int  // and how many its partitions have besides.
	level  level
	placed bool
}

// guest is who is in, until when at least.
type guest struct {
	level level
	until time.Time
}

// admission decides who is in. Three kinds of claims come one after the other: those
// who are in already and have not been for an hour, those that come first, and the
// rest. Each gets the partition level if there is room for that and for the others of
// its kind as a whole, so that no one group's partitions hide another group; if not, it
// is exported as a whole; if there is no room for that either, it is only counted.
type admission struct{ in map[string]guest }

// admit sets the level of each claim, within a number of series, and returns how many
// are taken. Claims are in order of name, which decides between equals.
func (a *admission) admit(now time.Time, claims []claim, budget int) (used int) {
	for i := range claims {
		c := &claims[i]
		held, in := a.in[c.name]
		if !in || !now.Before(held.until) {
			continue
		}
		c.placed = true
		switch {
		case held.level == parted && used+c.whole+c.parts <= budget:
			c.level = parted
			used += c.whole + c.parts
		case used+c.whole <= budget:
			c.level = whole
			used += c.whole
		}
	}
	used = admitKind(claims, true, used, budget)
	used = admitKind(claims, false, used, budget)
	a.remember(now, claims)
	return used
}

// admitKind admits those that come first, or the others. Who is in as a whole may have
// its partitions too.
func admitKind(claims []claim, first bool, used, budget int) int {
	reserved := 0
	for i := range claims {
		if c := &claims[i]; c.first == first && !c.placed {
			reserved += c.whole
		}
	}
	for i := range claims {
		c := &claims[i]
		if c.first != first || c.level == parted {
			continue
		}
		if !c.placed {
			reserved -= c.whole
			if used+c.whole > budget {
				continue
			}
			c.level = whole
			used += c.whole
		}
		if c.level == whole && used+c.parts+reserved <= budget {
			c.level = parted
			used += c.parts
		}
	}
	return used
}

// remember notes who is in, and forgets who is not.
func (a *admission) remember(now time.Time, claims []claim) {
	after := make(map[string]guest, len(a.in))
	for i := range claims {
		c := &claims[i]
		if c.level == counted {
			continue
		}
		g, in := a.in[c.name]
		if !in || c.level != g.level || !now.Before(g.until) {
			g.until = now.Add(stay)
		}
		g.level = c.level
		after[c.name] = g
	}
	a.in = after
}
