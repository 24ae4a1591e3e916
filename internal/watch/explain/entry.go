package explain

import (
	"encoding/json"
	"slices"
	"sort"
	"time"

	"muster/internal/journal"
)

// Entry is an entry of the journal, with what the broker wrote: a later version
// may say more than this one understands.
type Entry struct {
	journal.Entry
	Raw json.RawMessage
}

// ReadEntry reads the value of a record of the journal.
func ReadEntry(value []byte) (Entry, error) {
	e := Entry{Raw: value}
	err := json.Unmarshal(value, &e.Entry)
	return e, err
}

// SortEntries puts entries into the order of their times.
func SortEntries(entries []Entry) {
	sort.SliceStable(entries, func(i, j int) bool { return entries[i].Time.Before(entries[j].Time) })
}

// expiredNew is what expired means of a member that was in its first JoinGroup.
const expiredNew journal.TriggerKind = "expired-new"

// Took is how long a rebalance lasted, once it has settled.
func (e *Entry) Took() time.Duration { return e.Time.Sub(e.Started) }

// isStart says whether a rebalance begins with the entry, or goes on: members must join,
// or a consumer group has another epoch.
func (e *Entry) isStart() bool { return e.Kind == journal.KindStarted || e.Kind == journal.KindEpoch }

// assigns says whether the coordinator assigned in the group.
func (e *Entry) assigns() bool { return journal.Assigns(e.Type) }

// WithoutStarts drops the start of each rebalance that has settled: its end says
// all that the start does.
func WithoutStarts(entries []Entry) []Entry {
	var began time.Time // When the rebalance began whose end comes next.
	out := make([]Entry, 0, len(entries))
	for i := range slices.Backward(entries) {
		e := &entries[i]
		if e.Kind == journal.KindSettled {
			began = e.Started
		}
		if !e.isStart() && e.Kind != journal.KindTarget || began.IsZero() || e.Time.Before(began) {
			out = append(out, *e)
		}
	}
	slices.Reverse(out)
	return out
}
