package audit

import (
	"cmp"
	"slices"
	"time"
)

const (
	// window is how long what happens again is only counted.
	window = time.Minute
	// maxKept is how many things are counted apart. Names come from clients, who can
	// make up as many as they like; what comes when there are so many is counted together.
	maxKept = 1000
)

// Counter keeps what happens again and again from filling the log: the first of a kind
// is told at once, and what follows within a minute by one entry with a count. It is not
// for more than one goroutine at a time.
type Counter struct {
	kept map[sameness]*tally
	// others counts what found no place, for each kind: the kinds are few.
	others map[Kind]*tally
}

// sameness is what two entries have in common that are counted as one: who, and what.
// The client id is not in it, since clients put numbers into theirs.
type sameness struct {
	kind                                      Kind
	principal, host, operation, request, mech string
	resource                                  Resource // the first; without its detail
}

type tally struct {
	last  Entry
	since time.Time
	count int // after the first
}

// NewCounter returns a counter that has seen nothing.
func NewCounter() *Counter {
	return &Counter{kept: map[sameness]*tally{}, others: map[Kind]*tally{}}
}

// Add takes an entry that is bounded, and says whether it is to be written. What is not
// comes back in Due.
func (c *Counter) Add(e Entry) bool {
	if !e.Counted() {
		return true
	}
	key := sameAs(&e)
	if t := c.kept[key]; t != nil {
		t.last = e
		t.count++
		return false
	}
	if len(c.kept) < maxKept {
		c.kept[key] = &tally{last: e, since: e.Time}
		return true
	}
	t := c.others[e.Kind]
	if t == nil {
		t = &tally{since: e.Time}
		c.others[e.Kind] = t
	}
	t.last = Entry{Time: e.Time, Kind: e.Kind, Via: e.Via, Broker: e.Broker}
	t.count++
	return false
}

func sameAs(e *Entry) sameness {
	key := sameness{kind: e.Kind, principal: e.Principal, host: e.Host, operation: e.Operation, request: e.Request, mech: e.Mechanism}
	if e.Kind == Denied {
		key.request = "" // The right is what matters, not which of the requests that need it.
	}
	if len(e.Resources) > 0 {
		key.resource = Resource{Type: e.Resources[0].Type, Name: e.Resources[0].Name}
	}
	return key
}

// Due returns the entries for what was counted until a minute ago, the oldest first,
// and forgets what did not happen again. With all it returns the rest too: the broker
// stops.
func (c *Counter) Due(now time.Time, all bool) []Entry {
	var out []Entry
	for key, t := range c.kept {
		switch {
		case !t.over(now) && !all:
		case t.count == 0:
			delete(c.kept, key)
		default:
			out = append(out, t.entry())
			t.since, t.count = now, 0
		}
	}
	for kind, t := range c.others {
		if t.over(now) || all {
			out = append(out, t.entry())
			delete(c.others, kind)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Principal, b.Principal),
			cmp.Compare(a.Host, b.Host), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.name(), b.name()))
	})
	return out
}

// over says whether the minute is. A clock that was set back ends it too.
func (t *tally) over(now time.Time) bool {
	ago := now.Sub(t.since)
	return ago >= window || ago < 0
}

// entry is the last of those that were counted, and how many these were.
func (t *tally) entry() Entry {
	e := t.last
	e.Count, e.Since = t.count, t.since
	return e
}

// name is that of the first resource.
func (e *Entry) name() string {
	if len(e.Resources) == 0 {
		return ""
	}
	return e.Resources[0].Name
}
