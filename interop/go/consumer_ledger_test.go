package interop

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// slot is a partition of a topic.
type slot struct {
	topic     string
	partition int32
}

// ledger is what the members of a group said: who had which partition
// when, and what they read. Times are those of the members, not those at which the
// test heard of it: reports of different processes come in any order.
type ledger struct {
	mu      sync.Mutex
	tenures map[slot][]*tenure
	seen    map[slot]map[int64]bool // offsets
	written map[slot]map[int64]bool // those that are acknowledged
	silent  map[*memberProcess][]int64
	skipped error // the first record that a member passed over
}

// tenure is the time in which a member had a partition.
type tenure struct {
	of       *memberProcess
	from, to int64 // to is 0 while it lasts
	lost     bool  // it ended because the member was thrown out, or thought so
	next     int64 // offset, once a record was read; else 0
	reads    int
	heard    int64 // when records were last read
	pause    int64 // the longest time between two reads
}

func newLedger() *ledger {
	return &ledger{tenures: map[slot][]*tenure{}, seen: map[slot]map[int64]bool{}, written: map[slot]map[int64]bool{}, silent: map[*memberProcess][]int64{}}
}

func (l *ledger) hear(from *memberProcess, r memberReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r.Event {
	case eventAssigned:
		for _, p := range r.Partitions {
			s := slot{r.Topic, p}
			l.tenures[s] = append(l.tenures[s], &tenure{of: from, from: r.At})
		}
	case eventRevoked, eventLost:
		for _, p := range r.Partitions {
			if t := l.current(slot{r.Topic, p}, from); t != nil {
				t.to, t.lost = r.At, r.Event == eventLost
			}
		}
	case eventRecords:
		l.read(from, slot{r.Topic, r.Partition}, r.Offsets, r.At)
	}
}

// current is the tenure that a member has not ended.
func (l *ledger) current(s slot, of *memberProcess) *tenure {
	for _, t := range slices.Backward(l.tenures[s]) {
		if t.of == of && t.to == 0 {
			return t
		}
	}
	return nil
}

// read notes records. A member may go back to what is committed, but never
// ahead over what is there.
func (l *ledger) read(from *memberProcess, s slot, offsets []int64, at int64) {
	if l.seen[s] == nil {
		l.seen[s] = map[int64]bool{}
	}
	t := l.current(s, from)
	if t != nil {
		if t.heard > 0 {
			t.pause = max(t.pause, at-t.heard)
		}
		t.heard, t.reads = at, t.reads+len(offsets)
	}
	for _, o := range offsets {
		l.seen[s][o] = true
		if t == nil {
			continue // It was on its way when the partition went.
		}
		if missed, ok := l.between(s, t.next, o); ok && t.next > 0 && l.skipped == nil {
			l.skipped = fmt.Errorf("%s-%d: member %s reads offset %d after offset %d, and not %d", s.topic, s.partition, from.spec.ClientID, o, t.next-1, missed)
		}
		t.next = o + 1
	}
}

// between finds a record from an offset on, before another. Offsets may have gaps.
func (l *ledger) between(s slot, from, before int64) (int64, bool) {
	if from >= before {
		return 0, false
	}
	for o := range l.written[s] {
		if o >= from && o < before {
			return o, true
		}
	}
	return 0, false
}

// wrote notes a record that is acknowledged.
func (l *ledger) wrote(s slot, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written[s] == nil {
		l.written[s] = map[int64]bool{}
	}
	l.written[s][offset] = true
}

// silence notes that a member cannot speak from now on: it may be thrown out, and
// others have its partitions, before it says that it has them no longer.
func (l *ledger) silence(of *memberProcess) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent[of] = append(l.silent[of], time.Now().UnixNano())
}

// forget is for a topic that is deleted.
func (l *ledger) forget(topic string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := func(s slot) bool { return s.topic == topic }
	maps.DeleteFunc(l.tenures, func(s slot, _ []*tenure) bool { return of(s) })
	maps.DeleteFunc(l.seen, func(s slot, _ map[int64]bool) bool { return of(s) })
	maps.DeleteFunc(l.written, func(s slot, _ map[int64]bool) bool { return of(s) })
}

// owned returns what a member says it has now.
func (l *ledger) owned(of *memberProcess) []slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []slot
	for s := range l.tenures {
		if l.current(s, of) != nil {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, slotOrder)
	return out
}

// slotsOf returns the partitions of a topic.
func slotsOf(topic string, n int32) []slot {
	var out []slot
	for p := range n {
		out = append(out, slot{topic, p})
	}
	return out
}

func slotOrder(a, b slot) int {
	if a.topic != b.topic {
		if a.topic < b.topic {
			return -1
		}
		return 1
	}
	return int(a.partition - b.partition)
}

// end is when a tenure was over as far as others are concerned.
func (l *ledger) end(t *tenure) int64 {
	end := t.to
	for _, at := range l.silent[t.of] {
		if at >= t.from && (end == 0 || at < end) {
			end = at
		}
	}
	return end
}

// twice returns the partitions that two members had at the same time.
func (l *ledger) twice() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := []error{l.skipped}
	for s, tenures := range l.tenures {
		ordered := slices.SortedFunc(slices.Values(tenures), func(a, b *tenure) int { return int(a.from - b.from) })
		for i := 1; i < len(ordered); i++ {
			before, after := ordered[i-1], ordered[i]
			if end := l.end(before); (end == 0 || end > after.from+slackOf(before)) && before.of != after.of {
				errs = append(errs, fmt.Errorf("%s-%d: member %s has it since %s, and member %s until %s (0 is now)",
					s.topic, s.partition, after.of.spec.ClientID, clock(after.from), before.of.spec.ClientID, clock(end)))
			}
		}
	}
	return errors.Join(errs...)
}

// slackOf is for how long a member may go on to have what it has told the broker to have let
// go of. librdkafka seems to do so, once in dozens of runs, when it is told to give up
// partitions that it has only just got: it may not have said yet that it has them, and what
// it then says is what it is to have, before its application hears of that.
func slackOf(t *tenure) int64 {
	if t.of.spec.Client == "librdkafka" && t.to != 0 && !t.lost && t.to-t.from < int64(time.Second) {
		return int64(100 * time.Millisecond)
	}
	return 0
}

func clock(nanos int64) string {
	if nanos == 0 {
		return "0"
	}
	return time.Unix(0, nanos).Format("15:04:05.000000")
}

// missing returns the first acknowledged record that no member has read.
func (l *ledger) missing() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, offsets := range l.written {
		for o := range offsets {
			if !l.seen[s][o] {
				return fmt.Errorf("%s-%d: offset %d was not delivered; %d records of %d were", s.topic, s.partition, o, len(l.seen[s]), len(offsets))
			}
		}
	}
	return nil
}

// counts returns how many records were written, and how many tenures there were.
func (l *ledger) counts() (records, tenures int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, offsets := range l.written {
		records += len(offsets)
	}
	for _, t := range l.tenures {
		tenures += len(t)
	}
	return records, tenures
}
