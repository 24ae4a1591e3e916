package audit

import (
	"cmp"
	"maps"
	"sort"
	"strings"
	"time"
)

const (
	// window is how long what happens again is only counted.
	window = time.Minute
	// brokerWindow is how long logins of the cluster's own brokers are: they come every
	// minute, for ever.
	brokerWindow = time.Hour
	// maxKept is how many things of a kind are counted apart. An entry has a few kilobytes
	// at most, and hundreds of bytes mostly.
	maxKept = 1000
)

// Counter keeps what happens again and again from filling the log: the first of its like
// is told at once, and what follows within a minute by one entry with a count. Names come
// from clients, who can make up as many as they like; so each kind has places of its own,
// and whoever has some may take one more only as long as more than that are free. No one
// takes more than half of them, and two who take all they can leave a third. What finds no
// place is counted together, for each who does it. It is not for more than one goroutine
// at a time.
type Counter struct{ pools map[Kind]*pool }

// pool is what is counted of a kind.
type pool struct {
	kept   map[sameness]*tally
	owners map[string]*owner
	others *tally // of those who have no place at all; nil if there are none
}

// owner is someone who has places: a principal. Who failed to log in is known by the
// address only.
type owner struct {
	places int
	more   *tally // what found no place; nil if there is nothing
}

// sameness is what two entries have in common that are counted as one: who, and what.
// The client id is not in it, since clients put numbers into theirs.
type sameness struct {
	principal, host, operation, request, mech string
	resource                                  Resource // the first; without its detail
}

type tally struct {
	last  Entry
	since time.Time
	count int // after the first
}

// NewCounter returns a counter that has seen nothing.
func NewCounter() *Counter { return &Counter{pools: map[Kind]*pool{}} }

// Add takes an entry that is bounded, and says whether it is to be written. What is not
// comes back in Due.
func (c *Counter) Add(e Entry) bool {
	if !e.Counted() {
		return true
	}
	p := c.pools[e.Kind]
	if p == nil {
		p = &pool{kept: map[sameness]*tally{}, owners: map[string]*owner{}}
		c.pools[e.Kind] = p
	}
	key := sameAs(&e)
	if t := p.kept[key]; t != nil {
		t.last = e.short()
		t.count++
		return false
	}
	whose, free := ownerOf(&e), maxKept-len(p.kept)
	o := p.owners[whose]
	switch {
	case o == nil && free == 0:
		p.others = p.others.more(Entry{Time: e.Time, Kind: e.Kind, Via: e.Via, Broker: e.Broker})
		return false
	case o == nil:
		o = &owner{}
		p.owners[whose] = o
	case o.places >= free:
		o.more = o.more.more(e.anonymous())
		return false
	}
	o.places++
	p.kept[key] = &tally{last: e.short(), since: e.Time}
	return true
}

// ownerOf is whose place an entry takes. Names of logins that failed are anyone's.
func ownerOf(e *Entry) string {
	if e.Kind == LoginFailed {
		return e.Host
	}
	return e.Principal
}

// more counts one more.
func (t *tally) more(e Entry) *tally {
	if t == nil {
		t = &tally{since: e.Time}
	}
	t.last = e
	t.count++
	return t
}

// short is the entry with its first resource only, which is enough where it is counted.
func (e Entry) short() Entry {
	if len(e.Resources) > 1 {
		e.Resources = []Resource{e.Resources[0]}
	}
	return e
}

// anonymous stands for all of someone's entries of a kind that found no place.
func (e Entry) anonymous() Entry {
	out := Entry{Time: e.Time, Kind: e.Kind, Via: e.Via, Broker: e.Broker, Reason: "more than can be told apart"}
	if e.Kind == LoginFailed {
		out.Host = e.Host
	} else {
		out.Principal = e.Principal
	}
	return out
}

func sameAs(e *Entry) sameness {
	key := sameness{principal: e.Principal, host: e.Host, operation: e.Operation, request: e.Request, mech: e.Mechanism}
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
	for _, p := range c.pools {
		out = append(out, p.due(now, all)...)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Principal, b.Principal),
			cmp.Compare(a.Host, b.Host), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.name(), b.name())) < 0
	})
	return out
}

func (p *pool) due(now time.Time, all bool) (out []Entry) {
	for key, t := range p.kept {
		switch {
		case !t.over(now) && !all:
		case t.count == 0:
			delete(p.kept, key)
			p.owners[ownerOf(&t.last)].places--
		default:
			out = append(out, t.entry())
			t.since, t.count = now, 0
		}
	}
	for _, o := range p.owners {
		if o.more != nil && (o.more.over(now) || all) {
			out = append(out, o.more.entry())
			o.more = nil
		}
	}
	maps.DeleteFunc(p.owners, func(_ string, o *owner) bool { return o.places == 0 && o.more == nil })
	if p.others != nil && (p.others.over(now) || all) {
		out = append(out, p.others.entry())
		p.others = nil
	}
	return out
}

// over says whether the minute is. A clock that was set back ends it too.
func (t *tally) over(now time.Time) bool {
	most := window
	if t.last.Kind == Login && strings.HasPrefix(t.last.Principal, brokerPrefix) {
		most = brokerWindow
	}
	ago := now.Sub(t.since)
	return ago >= most || ago < 0
}

// brokerPrefix is what the principals of brokers of the cluster begin with. No user's does.
const brokerPrefix = "Broker:"

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
