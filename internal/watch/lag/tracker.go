package lag

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// forgetAfter is for how long groups and partitions are kept that no one sees: a shard
// may be loading.
const forgetAfter = 10 * minute

// restorable is how old what is restored may be.
const restorable = 7 * 24 * time.Hour

// Limits bound what a tracker takes.
type Limits struct {
	Bytes int64 // muster.group.history.max.bytes
	Asks  int   // How often Records is asked in a pass.
}

// Tracker follows the lag of groups.
type Tracker struct {
	budget
	records  Records
	maxAsked int

	start     time.Time // Tick 0.
	now       tick
	before    tick // Of the pass before.
	nowMillis int64
	pass      uint32
	ended     uint32 // The last pass that has.
	newMinute bool   // This pass is the first of a minute.
	asked     int
	points    int // How many a table may have.

	logs     map[key]*log
	allLogs  []*log
	groups   map[string]*group
	all      []*group // In order of name. Some may be dropped, until the pass ends.
	unsorted bool

	suspected []Suspicion // Not told yet.
}

// NewTracker returns a tracker that has seen nothing.
func NewTracker(limits Limits, records Records) *Tracker {
	return &Tracker{
		budget: budget{max: limits.Bytes}, records: records, maxAsked: limits.Asks, points: fullTable,
		logs: map[key]*log{}, groups: map[string]*group{},
	}
}

// Begin begins a pass, every 10 seconds. If the clock went back, time stands still
// until it is later again. If it went back by more than an hour, all that we know of
// times is wrong, and is forgotten.
func (t *Tracker) Begin(now time.Time) {
	if t.pass > 0 && now.Before(t.time(t.now).Add(-time.Hour)) {
		for _, g := range t.all {
			g.pass = dropped
		}
		*t = *NewTracker(Limits{t.max, t.maxAsked}, t.records)
	}
	if t.pass == 0 {
		// The points of all levels begin with a whole minute of people's clocks, and
		// no time is 0, which means never. What __group_history remembers is later.
		t.start = now.Truncate(time.Hour).Add(-restorable - time.Hour)
	}
	t.pass++
	t.asked = 0
	t.before = t.now
	t.now = max(t.now, tick(clamp(int64(now.Sub(t.start)/tenth), 0, math.MaxUint32)))
	t.nowMillis = t.millis(t.now)
	t.newMinute = t.now/minute != t.before/minute
}

// tenth is a tick.
const tenth = 100 * time.Millisecond

func (t *Tracker) millis(at tick) int64 { return t.time(at).UnixMilli() }

// time returns the time of a tick.
func (t *Tracker) time(at tick) time.Time { return t.start.Add(time.Duration(at) * tenth) }

// Log takes in a partition.
func (t *Tracker) Log(facts Log) {
	l := t.log(facts.Topic, facts.Partition)
	l.set(facts, t.pass, t.now)
	if l.users > 0 {
		t.note(l)
	}
}

// log returns what is kept of a partition, or begins to.
func (t *Tracker) log(topic string, partition int32) *log {
	k := key{topic, partition}
	l := t.logs[k]
	if l == nil {
		l = &log{Log: Log{Topic: topic, Partition: partition}, seenAt: t.now}
		t.logs[k] = l
		t.allLogs = append(t.allLogs, l)
		t.bytes += logSize + int64(len(topic))
	}
	return l
}

// note adds a point to the table of a partition that groups read.
func (t *Tracker) note(l *log) {
	if l.Offline || l.pass != t.pass {
		return
	}
	l.table.note(t.now, l.End, t.points)
	t.recount(l)
}

// recount counts the points of a table anew.
func (t *Tracker) recount(l *log) {
	t.bytes += int64(cap(l.table.points)-int(l.counted)) * pointSize
	l.counted = int32(cap(l.table.points))
}

// End ends a pass: what was not seen for long is forgotten, and what does not fit is
// evicted.
func (t *Tracker) End() {
	t.ended = t.pass
	t.all = keep(t.all, func(g *group) bool { return g.pass != dropped && t.now-g.seenAt < forgetAfter }, t.dropGroup)
	if t.unsorted {
		slices.SortFunc(t.all, func(a, b *group) int { return cmp.Compare(a.name, b.name) })
		t.unsorted = false
	}
	t.allLogs = keep(t.allLogs, func(l *log) bool { return t.now-l.seenAt < forgetAfter }, t.dropLog)
	// Tables share half of the memory. Those of partitions at rest are small, but may
	// not stay so.
	tables := 1
	for _, l := range t.allLogs {
		if l.users > 0 {
			tables++
		}
	}
	t.points = int(clamp(t.max/2/int64(tables)/pointSize-growth, leastTable, int64(fullTable)))
	for t.bytes > t.max && t.evict(true, true, t.now) {
	}
}

// keep drops what shall not stay.
func keep[T any](all []*T, stays func(*T) bool, drop func(*T)) []*T {
	return slices.DeleteFunc(all, func(item *T) bool {
		if stays(item) {
			return false
		}
		drop(item)
		return true
	})
}

func (t *Tracker) dropLog(l *log) {
	delete(t.logs, key{l.Topic, l.Partition})
	l.dropped = true
	t.bytes -= logSize + int64(len(l.Topic)) + int64(l.counted)*pointSize
}

// seen says whether the last pass has seen a group. While a pass is under way it may not
// have come to a group yet, and what the pass before has seen stands.
func (t *Tracker) seen(g *group) bool { return g.pass == t.pass || g.pass == t.ended }

// Bytes is what the tracker takes.
func (t *Tracker) Bytes() int64 { return t.bytes }
