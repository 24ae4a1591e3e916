package lag

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is logs and groups with a bookkeeping of their own, which knows when each
// record was appended and which groups have read it.
type world struct {
	t       testing.TB
	now     time.Time
	logs    map[key]*worldLog
	groups  map[string]*worldGroup
	tracker *Tracker
	asked   int
}

type worldRecord struct{ offset, at int64 }

type worldLog struct {
	Log
	records []worldRecord // Those that are still there.
	last    int64         // The last offset of all, -1 without any.
}

type worldGroup struct {
	members   int
	committed map[key]int64
	at        map[key]time.Time
	fetched   map[key]time.Time
	owner     Owner
	uncounted bool // Records could not be counted.
	deaths    []Death
}

func newWorld(t testing.TB, bytes int64) *world {
	w := &world{t: t, now: time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC), logs: map[key]*worldLog{}, groups: map[string]*worldGroup{}}
	w.restart(bytes)
	return w
}

func (w *world) restart(bytes int64) { w.tracker = NewTracker(Limits{bytes, 1000}, w) }

func (w *world) log(topic string, partition int32, bits uint8) *worldLog {
	k := key{topic, partition}
	if w.logs[k] == nil {
		w.logs[k] = &worldLog{Log: Log{Topic: topic, Partition: partition, LastStable: None, TimeBits: bits}, last: -1}
	}
	return w.logs[k]
}

func (w *world) group(name string) *worldGroup {
	if w.groups[name] == nil {
		w.groups[name] = &worldGroup{members: 1, owner: OwnerMember, committed: map[key]int64{}, at: map[key]time.Time{}, fetched: map[key]time.Time{}}
	}
	return w.groups[name]
}

// produce appends records at a time before now.
func (w *world) produce(l *worldLog, n int, at time.Time) {
	for range n {
		offset := l.last + 1
		if l.TimeBits > 0 {
			offset = max(offset, at.UnixMilli()<<l.TimeBits)
		}
		l.records = append(l.records, worldRecord{offset, at.UnixMilli()})
		l.last = offset
		l.Added++
	}
	l.End = l.last + 1
}

// trim deletes the first records.
func (l *worldLog) trim(n int) {
	n = min(n, len(l.records))
	if n > 0 {
		l.Start = l.records[n-1].offset + 1
	}
	l.records = slices.Delete(l.records, 0, n)
}

// unread returns the records that a group has still to read.
func (l *worldLog) unread(committed int64) []worldRecord {
	i, _ := slices.BinarySearchFunc(l.records, committed, func(r worldRecord, offset int64) int { return int(min(max(r.offset-offset, -1), 1)) })
	return l.records[i:]
}

// commit lets a group read some records and commit.
func (w *world) commit(g *worldGroup, l *worldLog, n int) {
	k := key{l.Topic, l.Partition}
	unread := l.unread(g.committed[k])
	n = min(n, len(unread))
	if n > 0 {
		g.committed[k] = unread[n-1].offset + 1
	} else if _, ok := g.committed[k]; !ok {
		g.committed[k] = l.Start
	}
	g.at[k] = w.now
}

// FirstTime implements Records.
func (w *world) FirstTime(topic string, partition int32, offset int64) (int64, bool) {
	w.asked++
	unread := w.logs[key{topic, partition}].unread(offset)
	if len(unread) == 0 {
		w.t.Errorf("asked for %s-%d@%d, where nothing is", topic, partition, offset)
		return 0, false
	}
	return unread[0].at, true
}

func compareKeys(a, b key) int {
	return (&Position{Topic: a.topic, Partition: a.partition}).compare(&Position{Topic: b.topic, Partition: b.partition})
}

func sortedKeys[V any](m map[key]V) []key {
	var out []key
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, compareKeys)
	return out
}

// pass hands all facts to the tracker.
func (w *world) pass() {
	w.tracker.Begin(w.now)
	for _, k := range sortedKeys(w.logs) {
		facts := w.logs[k].Log
		if facts.Offline {
			facts.Bounds, facts.Added = Bounds{}, 0
		}
		w.tracker.Log(facts)
	}
	for name := range w.groups {
		w.tracker.Group(w.facts(name))
	}
	w.tracker.End()
	for _, g := range w.groups {
		g.deaths = nil
	}
}

// facts is what a coordinator sees of a group.
func (w *world) facts(name string) Group {
	g := w.groups[name]
	facts := Group{Name: name, Members: g.members, Deaths: g.deaths}
	for _, k := range sortedKeys(g.committed) {
		p := Position{Topic: k.topic, Partition: k.partition, Committed: g.committed[k], CommittedAt: g.at[k], Owner: g.owner, Fetched: g.fetched[k]}
		if l := w.logs[k]; l != nil && l.TimeBits > 0 && !g.uncounted {
			p.Behind = &Count{Records: int64(len(l.unread(p.Committed)))}
		}
		facts.Positions = append(facts.Positions, p)
	}
	return facts
}

// step goes on by an interval.
func (w *world) step() { w.now = w.now.Add(10 * time.Second) }

// check holds what the tracker says against the bookkeeping. Ages may be off by two
// intervals or, of old records, by the spacing of the table.
func (w *world) check() {
	w.t.Helper()
	for name, g := range w.groups {
		var total int64
		oldest := 0.0
		got := w.tracker.Partitions(name)
		if len(got) != len(g.committed) {
			w.t.Fatalf("%s has %d partitions, want %d", name, len(got), len(g.committed))
		}
		for i, k := range sortedKeys(g.committed) {
			unread := w.logs[k].unread(g.committed[k])
			p := got[i]
			if p.Topic != k.topic || p.Partition != k.partition || !p.Known || p.Lag != int64(len(unread)) || p.Committed != g.committed[k] {
				w.t.Fatalf("%s in %v: %+v, want lag %d", name, k, p, len(unread))
			}
			age := 0.0
			if len(unread) > 0 {
				age = w.now.Sub(time.UnixMilli(unread[0].at)).Seconds()
			}
			if off := max(20, float64(spacing(tick(age*10)+10*minute)/second)+10); p.Seconds < age-off || p.Seconds > age+off || (age == 0) != (p.Seconds == 0) && age > off {
				w.t.Fatalf("%s in %v at %d: %v s, want %v", name, k, g.committed[k], p.Seconds, age)
			}
			total, oldest = total+p.Lag, max(oldest, p.Seconds)
		}
		sum, ok := w.tracker.Of(name)
		if !ok || sum.Lag != total || sum.Seconds != oldest || sum.Unknown || sum.Total.Partitions != len(got) {
			w.t.Fatalf("%s: %+v, want %d and %v", name, sum, total, oldest)
		}
	}
	checkBytes(w.t, w.tracker)
}

func TestLagEqualsAnIndependentCount(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 15))
			w := newWorld(t, 1<<20)
			logs := []*worldLog{w.log("orders", 0, 0), w.log("orders", 1, 0), w.log("clicks", 0, 10), w.log("rare", 7, 0), w.log("slow", 0, 20)}
			names := strings.Fields("a b c d")
			for range 1000 {
				w.step()
				if r.IntN(300) == 0 {
					w.now = w.now.Add(time.Duration(r.IntN(3600*4)) * time.Second) // The broker was busy elsewhere.
				}
				w.act(r, logs, names)
				w.pass()
				w.check()
			}
		})
	}
}

// act lets something happen in the last interval.
func (w *world) act(r *rand.Rand, logs []*worldLog, names []string) {
	for i, l := range logs {
		if r.IntN(1+i*i*i) == 0 {
			at := max(w.now.UnixMilli()-r.Int64N(10_000), l.newest())
			w.produce(l, r.IntN(5), time.UnixMilli(at))
		}
		if r.IntN(200) == 0 {
			l.trim(r.IntN(100))
		}
		g := w.group(names[r.IntN(len(names))])
		switch r.IntN(12) {
		case 0:
			g.members = r.IntN(2)
		case 1:
			if k := (key{l.Topic, l.Partition}); r.IntN(20) == 0 && len(l.records) > 0 {
				g.committed[k] = l.records[r.IntN(len(l.records))].offset
			} else if r.IntN(20) == 0 {
				delete(g.committed, k)
			}
		case 2:
			if r.IntN(100) == 0 {
				w.restart(1 << 20)
			}
		default:
			w.commit(g, l, r.IntN(30))
		}
	}
}

func (l *worldLog) newest() int64 {
	if len(l.records) == 0 {
		return 0
	}
	return l.records[len(l.records)-1].at
}

// wrong says whether anything is wrong with a group.
func (g *GroupLag) wrong() bool {
	return g.Poison > 0 || g.Dying || g.Stuck > 0 || g.Unread() || g.Overtaken() || g.NotCatchingUp() || g.Rewound()
}
