package redis

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// layout is how a log lies in Redis. What is the same in all of them (who owns the log,
// the queue of appends, producers, replicas) is in log, which asks its layout for the
// rest. A layout is also the handle that Open returns.
type layout interface {
	store.Log
	appends
	// name is what settings and the meta hash call it.
	name() store.Layout
	// position is how the meta hash writes an offset, and offsetAt how it is read.
	position(offset int64) string
	offsetAt(position entryID) int64
	// loadBounds finds where a log starts and ends that has been opened before: the
	// meta hash has these positions.
	loadBounds(ctx context.Context, f *found, start, end entryID) error
	// adopt finds it in a stream without a meta hash.
	adopt(ctx context.Context, f *found) error
	// loadState reads what is known of producers and aborted transactions, from the hash and
	// the sorted set, at a time of the server.
	loadState(ctx context.Context, producers map[string]string, aborted []string, now int64) error
}

// numbered is a layout in which ids stand for offsets: which entries an offset is in
// need not be looked up.
type numbered interface {
	layout
	scans
	maintenance
	// span returns the ids of the entries that hold an offset and those after it,
	// below another offset, which is larger.
	span(offset, next int64) (from, to entryID)
	// lastBefore is the largest id that a stream may have which ends at an offset.
	lastBefore(next int64) entryID
	// ahead is how far, in ms, the timestamp of a record of a batch is ahead of its id at
	// most, if that is known.
	ahead(p *pending) int64
	// adds lists what a transaction adds, and inScript what the script is to add of it by itself, and
	// how it is told so.
	adds(tx *transaction) []add
	inScript(adds []add) (list []string, words string)
	// overtaken is called when the stream has an entry, the last, that is not ours.
	overtaken(what string, last entryID) error
}

// appends is how batches become entries.
type appends interface {
	// check says whether a batch can be stored, as far as that is possible without
	// its records, and what it takes.
	check(p *pending) error
	// entriesOf is how many entries a batch becomes.
	entriesOf(b record.Batch) int
	// encode makes the entries of a batch. It says no if there is not enough memory for
	// that now, and may not wait; why it failed is in p.err.
	encode(p *pending, wait bool) bool
	// base chooses the offset for the next records, not below next.
	base(next, records int64) int64
	// usesClock says whether ids follow the server's clock.
	usesClock() bool
	// composed is called when the batches of a transaction have got their offsets, from base
	// on. The lock is held.
	composed(tx *transaction, base int64)
	// commands makes the commands of a transaction, and accepted reads what the first of them,
	// the script, and the others answered.
	commands(tx *transaction) []rueidis.Completed
	accepted(tx *transaction, script reply, others []rueidis.RedisMessage) error
	// commit takes a transaction that Redis has executed into the handle.
	commit(tx *transaction)
}

// scans is how entries are read.
type scans interface {
	newSink(req store.ReadRequest, epochs []store.EpochStart) sink
	// scanScript tells the id, size and something more of entries, of which itemOf
	// makes items. Entries without an offset are left out.
	scanScript() string
	itemOf(id entryID, size int64, told string) (item, bool, error)
	offsetForTimestamp(ctx context.Context, ts int64) (store.TimestampOffset, bool, error)
	maxTimestamp(ctx context.Context) (store.TimestampOffset, bool, error)
}

// maintenance is how records go.
type maintenance interface {
	// retainRoughly drops what can be dropped without looking at each entry, and
	// returns the offset from which on they are looked at.
	retainRoughly(ctx context.Context, r store.Retention) (from int64, err error)
	// trim removes what is below an offset of the log.
	trim(ctx context.Context, newStart int64) error
	// trimTo moves the log start offset and removes what is below it, which is so many
	// bytes as far as the caller has looked.
	trimTo(ctx context.Context, newStart, bytes int64) error
	compact(ctx context.Context, c store.Compaction) error
}

// defaultLayout is that of logs whose settings name none.
const defaultLayout = store.LayoutLog

// makers makes the layout of a log that was made with it, as the meta hash says.
var makers = map[store.Layout]func(l *log, meta map[string]string) (layout, error){
	store.LayoutLog:     newBatchLog,
	store.LayoutStream:  newRecordLog,
	store.LayoutIndexed: newIndexLog,
}

// newLayout makes the layout of a log. It keeps the one that it was made with.
func newLayout(l *log, meta map[string]string) (layout, error) {
	name := store.Layout(meta["layout"])
	make, ok := makers[name]
	if !ok {
		return nil, fmt.Errorf("%w: layout %q", store.ErrCorrupt, name)
	}
	made, err := make(l, meta)
	l.numbered, _ = made.(numbered)
	return made, err
}

// Layouts returns the names of the layouts that topics can have.
func Layouts() []string {
	var names []string
	for name := range makers {
		names = append(names, string(name))
	}
	return names
}
