package disk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// world is a store on a file system in memory, with a workload that remembers
// what it was promised. What it does is decided by a seed alone, so that it can
// be stopped at every operation of the file system in turn.
type world struct {
	fs     *vfs.Mem
	seed   uint64
	rng    *rand.Rand
	st     *Store
	tracks []*track
	serial int
	clock  int64
	// carryOn is for failures that pass: they are recovered from, not returned.
	carryOn bool
	// reuse has files of the journal used again and again, also for rounds of several
	// blocks, while logs are deleted and made anew.
	reuse bool
	// boot is the kernel's, which has the store stopped quickly; empty for one that is not known.
	boot string
}

// reuseSeeds are the seeds of worlds with reuse, from here on; quickSeeds more are those in
// which the store is stopped quickly.
const (
	reuseSeeds = 1000
	quickSeeds = 10_000
)

// seeds returns some of each kind, with -short a few: they run without goroutines of their own.
func seeds(plain, reuse uint64) (out []uint64) {
	if testing.Short() {
		plain, reuse = 1, 1
	}
	for seed := range plain {
		out = append(out, seed)
	}
	for seed := range reuse {
		out = append(out, reuseSeeds+seed)
	}
	for i, seed := range out {
		if i%4 == 0 {
			out = append(out, quickSeeds+seed)
		}
	}
	return out
}

const worldRoot = "var/data"

// worldConfig makes segments of a few batches.
var worldConfig = store.LogConfig{SegmentBytes: 700, IndexInterval: 200}

func newWorld(fs *vfs.Mem, seed uint64) *world {
	w := &world{fs: fs, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), clock: 1_000_000, reuse: seed%quickSeeds >= reuseSeeds}
	if seed >= quickSeeds {
		w.boot = "first"
	}
	for _, topic := range []string{"main", "side"} {
		w.tracks = append(w.tracks, newTrack(store.TopicPartition{Topic: topic}))
	}
	return w
}

// plan returns the workload's steps in an order that the seed decides. All of
// them occur, whatever the order.
func (w *world) plan() []func() error {
	main, side := w.tracks[0], w.tracks[1]
	var steps []func() error
	add := func(n int, step func() error) {
		for range n {
			steps = append(steps, step)
		}
	}
	if w.reuse {
		add(12, func() error { return w.appendAndFlush(main) })
		add(10, func() error { return w.appendAndFlush(side) })
		add(3, func() error { return w.remove(side) })
		add(2, func() error { return w.remove(main) })
		if w.boot != "" {
			add(4, w.restart)
		}
		w.rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		return append([]func() error{w.start}, steps...)
	}
	add(9, func() error { return w.append(main) })
	add(7, func() error { return w.appendAndFlush(main) })
	add(2, func() error { return w.appendAndFlush(side) })
	add(1, func() error { return w.append(side) })
	add(2, func() error { return w.trim(main, false) })
	add(1, func() error { return w.trim(main, true) })
	add(2, func() error { return w.retain(main) })
	add(3, func() error { return w.compact(main) })
	add(2, func() error { return w.save(main) })
	add(2, func() error { return w.bumpEpoch(main) })
	add(1, func() error { return w.remove(side) })
	add(1, w.restart)
	if w.boot != "" {
		add(2, w.restart)
	}
	w.rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	// Compaction and retention need something to drop.
	first := []func() error{
		w.start, func() error { return w.append(main) }, func() error { return w.appendAndFlush(main) },
		func() error { return w.appendAndFlush(side) }, func() error { return w.append(main) },
	}
	return append(first, steps...)
}

// run runs the workload until it ends or fails, and closes the store.
func (w *world) run() error {
	for _, step := range w.plan() {
		if err := step(); err != nil {
			return errors.Join(err, w.close())
		}
	}
	return w.stop()
}

// stop closes the store cleanly, after which everything is durable.
func (w *world) stop() error {
	if err := w.close(); err != nil {
		if err := w.failed(nil, "close", err); err != nil {
			return err
		}
		return w.stop()
	}
	if w.boot != "" {
		return nil // The machine has it, the disk may not.
	}
	for _, tr := range w.tracks {
		tr.durableEnd = tr.end
	}
	return nil
}

func (w *world) close() error {
	if w.st == nil {
		return nil
	}
	st := w.st
	w.st = nil
	return st.Close()
}

// openStore opens the store so that the order of its operations depends on
// nothing but the order of calls.
func openStore(fs vfs.FS) (*Store, error) { return openBooted(fs, "") }

func openBooted(fs vfs.FS, boot string) (*Store, error) {
	st, err := Open(worldRoot, Options{FS: fs, boot: boot, MaxOpenFiles: 3, inline: true, journalSize: 16 << 10, journaledMost: 1 << 10, indexEach: 300})
	if err == nil {
		st.closers = 1
	}
	return st, err
}

func (w *world) openStore() (err error) {
	if !w.reuse {
		w.st, err = openBooted(w.fs, w.boot)
		return err
	}
	w.st, err = Open(worldRoot, Options{FS: w.fs, boot: w.boot, MaxOpenFiles: 3, inline: true, journalSize: 16 << 10, journaledMost: 6 << 10})
	if err == nil {
		w.st.closers = 1
	}
	return err
}

func (w *world) config() store.LogConfig {
	if w.reuse {
		return store.LogConfig{SegmentBytes: 1 << 20, IndexInterval: worldConfig.IndexInterval}
	}
	return worldConfig
}

// open opens the store and its logs.
func (w *world) open() error {
	if err := w.openStore(); err != nil {
		return err
	}
	for _, tr := range w.tracks {
		if err := w.openLog(tr); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) openLog(tr *track) (err error) {
	if tr.log, err = w.st.Open(context.Background(), tr.tp, tr.epoch, w.config()); err != nil {
		return err
	}
	_, tr.end = tr.log.Bounds()
	tr.producers, _, err = completeProducers(tr.log)
	return err
}

// batch makes a batch of one to three records; some delete their key, and one
// in five batches spans several sectors.
func (w *world) batch(tr *track) (record.Batch, []logged) {
	var recs []record.Record
	var noted []logged
	pad := strings.Repeat("p", w.rng.IntN(60))
	if w.rng.IntN(5) == 0 {
		pad = strings.Repeat("l", 500+w.rng.IntN(1500))
	}
	if w.reuse && w.rng.IntN(3) == 0 {
		pad = strings.Repeat("b", 2000)
	}
	for i := range 1 + w.rng.IntN(3) {
		w.serial++
		w.clock += w.rng.Int64N(200) - 50
		n := logged{
			offset: tr.end + int64(i), epoch: tr.epoch, time: w.clock,
			key: fmt.Sprintf("key-%d", w.rng.IntN(6)), value: fmt.Sprintf("%s %d %s", tr.tp.Topic, w.serial, pad),
		}
		r := record.Record{OffsetDelta: int32(i), Timestamp: n.time, Key: []byte(n.key), Value: []byte(n.value)}
		if w.rng.IntN(6) == 0 {
			r.Value, n.value = nil, deleted
		}
		recs, noted = append(recs, r), append(noted, n)
	}
	tmpl := record.PlainTemplate()
	if id := w.rng.Int64N(4); id > 0 {
		tmpl.ProducerID, tmpl.ProducerEpoch, tmpl.BaseSequence = id, 0, int32(w.serial)
	}
	b, err := record.Build(tmpl, recs)
	if err != nil {
		panic(err)
	}
	return b, noted
}

// sample makes a batch of n records.
func sample(n int, value string) record.Batch {
	var recs []record.Record
	for i := range n {
		recs = append(recs, record.Record{OffsetDelta: int32(i), Timestamp: int64(1000 + i), Key: fmt.Append(nil, "key-", i), Value: []byte(value)})
	}
	b, err := record.Build(record.PlainTemplate(), recs)
	if err != nil {
		panic(err)
	}
	return b
}

func (w *world) append(tr *track) error {
	b, noted := w.batch(tr)
	for _, n := range noted {
		tr.maybe[n.offset] = append(tr.maybe[n.offset], n)
	}
	b.SetBaseOffset(tr.end)
	tr.attempted[produced{b.ProducerID(), b.BaseSequence(), b.BaseOffset(), b.LastOffset()}] = true
	a, err := tr.log.Append(context.Background(), b)
	if err != nil {
		return w.failed(tr, "append", err)
	}
	if _, err := tr.producers.Note(b, b.MaxTimestamp()); err != nil {
		return err
	}
	tr.acked = append(tr.acked, produced{b.ProducerID(), b.BaseSequence(), b.BaseOffset(), b.LastOffset()})
	if a.BaseOffset != tr.end {
		return fmt.Errorf("batch appended at %d, log ended at %d", a.BaseOffset, tr.end)
	}
	tr.certain = append(tr.certain, noted...)
	tr.end = a.LastOffset + 1
	return nil
}

func (w *world) appendAndFlush(tr *track) error {
	if err := w.append(tr); err != nil {
		return err
	}
	if err := flush(tr.log); err != nil {
		return w.failed(tr, "flush", err)
	}
	tr.durableEnd = tr.end
	return nil
}

// flush waits for a log to become durable.
func flush(l store.Log) error {
	done := make(chan error, 1)
	l.Flush(func(err error) { done <- err })
	return <-done
}

func (w *world) trim(tr *track, all bool) error {
	start, end := tr.log.Bounds()
	to := end
	if !all {
		to = start + w.rng.Int64N(end-start+1)*2/3
	}
	tr.startTried = max(tr.startTried, to)
	if err := tr.log.Trim(context.Background(), to); err != nil {
		return w.failed(tr, "trim", err)
	}
	tr.startAcked = max(tr.startAcked, to)
	return nil
}

func (w *world) retain(tr *track) error {
	start, end := tr.log.Bounds()
	r := store.Retention{Now: time.UnixMilli(w.clock), MaxAge: -1, MaxBytes: w.rng.Int64N(1000), NextOffset: end - (end-start)/3}
	if w.rng.IntN(2) == 0 {
		r.MaxAge = time.Duration(w.rng.IntN(500)) * time.Millisecond
	}
	before := tr.startTried
	tr.startTried = max(tr.startTried, r.NextOffset)
	if err := tr.log.Retain(context.Background(), r); err != nil {
		return w.failed(tr, "retain", err)
	}
	tr.startAcked, _ = tr.log.Bounds()
	tr.startTried = max(before, tr.startAcked)
	return nil
}

// compact compacts. Once that is acknowledged, what remains is what must.
func (w *world) compact(tr *track) error {
	_, end := tr.log.Bounds()
	tr.compactTo, tr.passes = end, tr.passes+1
	c := store.Compaction{Now: time.UnixMilli(w.clock), NextOffset: end, DeleteRetention: -time.Hour}
	// Larger segments are allowed meanwhile, so that several become one.
	tr.log.SetConfig(store.LogConfig{SegmentBytes: 4 * worldConfig.SegmentBytes, IndexInterval: worldConfig.IndexInterval})
	defer func() { tr.log.SetConfig(worldConfig) }()
	if err := tr.log.Compact(context.Background(), c); err != nil {
		return w.failed(tr, "compact", err)
	}
	content, err := readContent(tr.log)
	if err != nil {
		return w.failed(tr, "read", err)
	}
	if err := tr.check(content, tr.end); err != nil {
		return err
	}
	tr.certain, tr.compactTo = content, 0
	return nil
}

func (w *world) save(tr *track) error {
	if err := tr.log.SaveProducers(context.Background(), tr.producers.List(), tr.end); err != nil {
		return w.failed(tr, "save producers", err)
	}
	tr.savedAcked = tr.end
	return nil
}

func (w *world) bumpEpoch(tr *track) error {
	tr.epoch++
	if err := w.openLog(tr); err != nil {
		return w.failed(tr, "open", err)
	}
	return nil
}

// remove deletes a log and makes it anew.
func (w *world) remove(tr *track) error {
	tr.deleting = true
	if err := w.st.Delete(context.Background(), tr.tp); err != nil {
		return w.failed(tr, "delete", err)
	}
	*tr = *newTrack(tr.tp)
	if err := w.openLog(tr); err != nil {
		return w.failed(tr, "open", err)
	}
	return w.appendAndFlush(tr)
}

func (w *world) start() error {
	if err := w.open(); err != nil {
		return w.failed(nil, "start", err)
	}
	return nil
}

// restart stops cleanly and starts again.
func (w *world) restart() error {
	if err := w.stop(); err != nil {
		return err
	}
	if err := w.open(); err != nil {
		return w.failed(nil, "start", err)
	}
	if !w.st.WasClean() {
		return errors.New("the stop was clean, the start does not know it")
	}
	return nil
}
