package watch

import (
	"context"
	"slices"
	"time"

	"muster/internal/watch/history"
	"muster/internal/watch/lag"
)

// History keeps what is known of groups over restarts: a topic with partitions, to which
// groups belong as they do to shards.
type History interface {
	// Led returns the partitions that this broker writes to, those whose groups it has
	// loaded, and to which a group belongs. Without a topic there are none; it creates
	// one if it is told to.
	Led(ctx context.Context, create bool) (partitions []int32, of func(group string) int32)
	// Write appends records, each within history.MaxBytes.
	Write(ctx context.Context, partition int32, at time.Time, records [][]byte) error
	// Read calls f with the records of a partition from a time on, in their order, up to
	// the end that there is when it begins.
	Read(ctx context.Context, partition int32, from time.Time, f func(record []byte)) error
}

const (
	// wholeEvery is how often all positions are written, and not only those that have
	// changed: whoever asks where a group was reads back to there.
	wholeEvery = 6 * time.Hour
	// readBack is how far back is read after a start. Rings hold no more.
	readBack = 48 * time.Hour
	// maxDeleted is how many bytes the names of deleted groups may take whose end is to be
	// written.
	maxDeleted = 4 << 20
)

// keeper writes history and reads it back. It belongs to the pass.
type keeper struct {
	began   time.Time // When there first was something to write.
	parts   map[int32]*kept
	deleted []string // Groups whose end is to be written.
}

// kept is what was written to a partition.
type kept struct {
	restored bool
	since    time.Time // What has changed since then is not written. Zero for everything.
	due      time.Time
	whole    time.Time // When all positions were last written.
}

// keep writes what is due, and reads what was written before this broker led a partition.
func (w *Watch) keep(ctx context.Context, now time.Time) {
	if w.opts.History == nil {
		return
	}
	k := &w.keeper
	if k.began.IsZero() && w.Snapshot().Groups.Len() > 0 {
		k.began = now
	}
	create := !k.began.IsZero() && now.Sub(k.began) >= w.opts.HistoryEvery
	led, of := w.opts.History.Led(ctx, create)
	parts := map[int32]*kept{}
	for _, p := range led {
		switch before := k.parts[p]; {
		case before == nil:
			// Its groups were loaded a moment ago, and a pass must have seen them first.
			parts[p] = &kept{due: w.firstDue(now)}
			continue
		case !before.restored:
			w.restore(ctx, p, now)
			before.restored = true
		}
		if parts[p] = k.parts[p]; !now.Before(parts[p].due) {
			w.write(ctx, p, of, now)
		}
	}
	k.parts = parts
	// Of the others nothing is written here. When such a partition comes back, another
	// broker may have made groups of those names.
	k.deleted = slices.DeleteFunc(k.deleted, func(name string) bool { return of == nil || parts[of(name)] == nil })
}

// firstDue is when a partition is first written to: after a while, so that brokers which
// start again and again do not write everything each time.
func (w *Watch) firstDue(now time.Time) time.Time {
	if due := w.keeper.began.Add(w.opts.HistoryEvery); !w.keeper.began.IsZero() && due.After(now) {
		return due
	}
	return now
}

// keepLast writes what was not due yet, when the broker stops.
func (w *Watch) keepLast(ctx context.Context) {
	w.passing.Lock()
	defer w.passing.Unlock()
	for p, k := range w.keeper.parts {
		if _, of := w.opts.History.Led(ctx, false); k.restored && of != nil {
			w.write(ctx, p, of, w.opts.Now())
		}
	}
}

// write writes what has changed in the groups of a partition. What cannot be written now
// is part of what is written next.
func (w *Watch) write(ctx context.Context, partition int32, of func(string) int32, now time.Time) {
	k := w.keeper.parts[partition]
	k.due = now.Add(w.opts.HistoryEvery)
	mine := func(group string) bool { return of(group) == partition }
	gone := history.Record{Time: now.UnixMilli()}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(w.keeper.deleted))) {
		if mine(name) {
			gone.Groups = append(gone.Groups, history.DeletedGroup(name))
		}
	}
	whole := now.Sub(k.whole) >= wholeEvery
	var changes *history.Record
	w.Read(func(t *lag.Tracker) { changes = t.Changes(k.since, whole, mine) })
	if records := slices.Concat(history.Encode(&gone), history.Encode(changes)); len(records) > 0 {
		if err := w.opts.History.Write(ctx, partition, now, records); err != nil {
			w.opts.Logger.Warn("the history of groups could not be written", "partition", partition, "error", err)
			return
		}
	}
	w.keeper.deleted = slices.DeleteFunc(w.keeper.deleted, mine)
	if k.since = now; whole {
		k.whole = now
	}
}

// noteDeleted remembers that the end of groups is to be written.
func (k *keeper) noteDeleted(names map[string]bool) {
	if len(names) == 0 {
		return
	}
	takes := func(name string) int { return len(name) + 16 } // With where it is and how long.
	room := maxDeleted
	for _, name := range k.deleted {
		room -= takes(name)
	}
	for name := range names {
		if n := takes(name); n <= room {
			k.deleted, room = append(k.deleted, name), room-n
		}
	}
}

// restore reads what was written before.
func (w *Watch) restore(ctx context.Context, partition int32, now time.Time) {
	unreadable := 0
	err := w.opts.History.Read(ctx, partition, now.Add(-readBack), func(b []byte) {
		r, err := history.Decode(b)
		if err != nil {
			unreadable++
			return
		}
		w.Read(func(t *lag.Tracker) { t.Restore(r) })
	})
	if err != nil || unreadable > 0 {
		w.opts.Logger.Warn("the history of groups could not be read in full", "partition", partition, "unreadable", unreadable, "error", err)
	}
}
