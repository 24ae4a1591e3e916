package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

var concurrentTests = []test{
	{"ReadersDuringAppendSeeAPrefix", testReadDuringAppend},
	{"ReadersDuringTrimSeeASuffix", testReadDuringTrim},
	{"ReadersDuringRetentionSeeASuffix", testReadDuringRetain},
	{"ReadersDuringCompactionMissNothingThatRemains", testReadDuringCompact},
	{"SearchesDuringChangesFindRecords", testSearchDuringChanges},
	{"FlushesDuringAppendAllSucceed", testFlushDuringAppend},
	{"OpenAndDeleteFromAllSides", testOpenAndDelete},
	{"EveryEpochFencesTheOneBefore", testEpochRace},
}

const (
	concurrentReaders = 3
	concurrentAppends = 150
)

// numbered makes a batch of records that carry consecutive numbers from first
// on. Every seventh number has a key of its own; the others share a few.
func numbered(first, n int, pad string) (record.Batch, error) {
	var recs []record.Record
	for i := first; i < first+n; i++ {
		key := fmt.Sprintf("shared-%d", i%5)
		if unique(i) {
			key = fmt.Sprintf("own-%d", i)
		}
		value := binary.BigEndian.AppendUint64(nil, uint64(i))
		recs = append(recs, record.Record{OffsetDelta: int32(i - first), Timestamp: int64(i + 1), Key: []byte(key), Value: append(value, pad...)})
	}
	return record.Build(record.PlainTemplate(), recs)
}

func unique(number int) bool { return number%7 == 0 }

func numberOf(r *record.Record) int { return int(binary.BigEndian.Uint64(r.Value)) }

// progress is how far a writer is, for readers that wait for more of it.
type progress struct {
	mu       sync.Mutex
	grew     sync.Cond
	steps    int
	complete bool
}

func newProgress() *progress {
	p := &progress{}
	p.grew.L = &p.mu
	return p
}

func (p *progress) step() { p.change(func() { p.steps++ }) }
func (p *progress) end()  { p.change(func() { p.complete = true }) }

func (p *progress) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.grew.Broadcast()
}

func (p *progress) isComplete() bool {
	_, complete := p.look()
	return complete
}

// look returns how many steps there were, and whether they were all.
func (p *progress) look() (steps int, complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.steps, p.complete
}

// await waits until there were more steps than that, or all.
func (p *progress) await(steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.steps <= steps && !p.complete {
		p.grew.Wait()
	}
}

// appendNumbered appends batch after batch and calls after with the number of
// batches so far, then tells the readers that the log is complete.
func (f *fixture) appendNumbered(p *progress, after func(batches int)) {
	f.Helper()
	defer p.end()
	for i := range concurrentAppends {
		b, err := numbered(3*i, 3, strings.Repeat("p", i%90))
		f.must(err)
		_, err = f.log.Append(f.ctx, b)
		f.must(err)
		p.step()
		after(i + 1)
	}
}

// follow reads the log from an offset until it is complete and read to its end,
// and calls see with the number of every record. If the log start moves past
// the reader it goes on from there, after it has called skip.
func (f *fixture) follow(at int64, p *progress, see func(number int) error, skip func()) error {
	for {
		steps, final := p.look()
		_, end := f.log.Bounds()
		next, err := f.followTo(at, end, see)
		if errors.Is(err, store.ErrOffsetOutOfRange) {
			start, _ := f.log.Bounds()
			if start <= at {
				return fmt.Errorf("offset %d out of range in a log from %d to %d", at, start, end)
			}
			at = start
			skip()
			continue
		}
		if err != nil {
			return err
		}
		if final && next == at {
			return nil
		}
		if next == at {
			p.await(steps)
		}
		at = next
	}
}

// followTo reads from an offset once, and returns where to go on.
func (f *fixture) followTo(at, end int64, see func(number int) error) (int64, error) {
	r, err := f.log.Read(context.Background(), store.ReadRequest{Offset: at, NextOffset: end, MaxBytes: 2000, MinOne: true})
	if err != nil {
		return at, err
	}
	defer r.Release()
	b, err := r.Load()
	if err != nil {
		return at, err
	}
	for len(b) > 0 {
		var batch record.Batch
		if batch, b, err = record.Next(b); err != nil {
			return at, err
		}
		if err := batch.Check(); err != nil {
			return at, err
		}
		err = batch.Each(func(r *record.Record) error {
			if r.Offset < at {
				return nil
			}
			return see(numberOf(r))
		})
		if err != nil {
			return at, err
		}
		at = batch.LastOffset() + 1
	}
	return at, nil
}

// readersDuring runs readers during work, each with its own state from newReader.
func (f *fixture) readersDuring(work func(p *progress), newReader func() (see func(int) error, skip func(), end func() error)) {
	f.Helper()
	start, _ := f.log.Bounds()
	p := newProgress()
	var readers sync.WaitGroup
	for i := range concurrentReaders {
		readers.Go(func() {
			see, skip, end := newReader()
			err := f.follow(start, p, see, skip)
			if err == nil {
				err = end()
			}
			assert.NoError(f, err, "reader %d", i)
		})
	}
	defer readers.Wait()
	defer p.end()
	work(p)
}

// inSequence makes readers that want every number after the one before, except
// where the log start has overtaken them.
func inSequence() (see func(int) error, skip func(), end func() error) {
	next, skipped := 0, false
	see = func(n int) error {
		if n != next && (!skipped || n < next) {
			return fmt.Errorf("record %d after %d", n, next-1)
		}
		next, skipped = n+1, false
		return nil
	}
	end = func() error {
		if next != 3*concurrentAppends && !skipped {
			return fmt.Errorf("the last record was %d of %d", next-1, 3*concurrentAppends)
		}
		return nil
	}
	return see, func() { skipped = true }, end
}

func testReadDuringAppend(f *fixture) {
	f.readersDuring(func(p *progress) { f.appendNumbered(p, func(int) {}) }, inSequence)
}

func testReadDuringTrim(f *fixture) {
	f.readersDuring(func(p *progress) {
		f.appendNumbered(p, func(n int) {
			if start, end := f.log.Bounds(); n%4 == 0 {
				f.must(f.log.Trim(f.ctx, start+(end-start)*2/3))
			}
		})
	}, inSequence)
}

func testReadDuringRetain(f *fixture) {
	f.readersDuring(func(p *progress) {
		f.appendNumbered(p, func(n int) {
			f.must(f.log.Retain(f.ctx, store.Retention{Now: time.UnixMilli(int64(3 * n)), MaxAge: 60 * time.Millisecond, MaxBytes: 3000, NextOffset: f.end()}))
		})
	}, inSequence)
}

// testReadDuringCompact demands of readers that they see numbers grow, and
// among them every one whose key is its own, since nothing supersedes those.
func testReadDuringCompact(f *fixture) {
	newReader := func() (see func(int) error, skip func(), end func() error) {
		last := -1
		missed := func(from, to int) error {
			for n := from; n < to; n++ {
				if unique(n) {
					return fmt.Errorf("record %d missed between %d and %d", n, from-1, to)
				}
			}
			return nil
		}
		see = func(n int) error {
			if n <= last {
				return fmt.Errorf("record %d after %d", n, last)
			}
			err := missed(last+1, n)
			last = n
			return err
		}
		return see, func() {}, func() error { return missed(last+1, 3*concurrentAppends) }
	}
	f.readersDuring(func(p *progress) {
		var compactor sync.WaitGroup
		compactor.Go(func() {
			for !p.isComplete() {
				err := f.log.Compact(f.ctx, store.Compaction{Now: time.UnixMilli(1 << 40), NextOffset: f.end()})
				assert.NoError(f, err, "compact")
			}
		})
		f.appendNumbered(p, func(int) {})
		compactor.Wait()
	}, newReader)
}

func testSearchDuringChanges(f *fixture) {
	p := newProgress()
	var searchers sync.WaitGroup
	for range concurrentReaders {
		searchers.Go(func() {
			for ts := int64(1); !p.isComplete(); ts = (ts + 7) % (3 * concurrentAppends) {
				hit, ok, err := f.log.OffsetForTimestamp(f.ctx, ts)
				if err != nil || ok && hit.Timestamp < ts {
					f.Errorf("timestamp %d: %+v, %v", ts, hit, err)
					return
				}
				if _, _, err := f.log.MaxTimestamp(f.ctx); err != nil {
					f.Errorf("largest timestamp: %v", err)
					return
				}
				f.log.Size()
				f.log.Epochs()
				if _, _, err := f.log.Producers(f.ctx); err != nil {
					f.Errorf("producers: %v", err)
					return
				}
			}
		})
	}
	f.appendNumbered(p, func(n int) {
		start, end := f.log.Bounds()
		switch n % 5 {
		case 1:
			f.must(f.log.Trim(f.ctx, start+(end-start)/3))
		case 2:
			f.must(f.log.Compact(f.ctx, store.Compaction{Now: time.UnixMilli(1 << 40), NextOffset: end}))
		case 3:
			f.must(f.log.SaveProducers(f.ctx, []store.Producer{{ID: int64(n)}}, end))
		case 4:
			f.must(f.log.Retain(f.ctx, store.Retention{Now: time.UnixMilli(1), MaxAge: -1, MaxBytes: 5000, NextOffset: end}))
		}
	})
	searchers.Wait()
}

func testFlushDuringAppend(f *fixture) {
	var flushes sync.WaitGroup
	f.appendNumbered(newProgress(), func(n int) {
		for range n % 3 {
			flushes.Add(1)
			f.log.Flush(func(err error) {
				assert.NoError(f, err, "flush after %d batches", n)
				flushes.Done()
			})
		}
		if start, end := f.log.Bounds(); n%10 == 0 {
			f.must(f.log.Trim(f.ctx, start+(end-start)*int64(1+n/10%2)/2))
		}
	})
	flushes.Wait()
}

// testOpenAndDelete lets several callers fight over a few logs. Each may be
// fenced, ended or see its log deleted, but nothing else may happen.
func testOpenAndDelete(f *fixture) {
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := range 40 {
				tp := store.TopicPartition{Topic: "contended", Partition: int32((w + i) % 3)}
				assert.NoError(f, f.useContended(tp, w == 0 && i%5 == 4), "worker %d, round %d", w, i)
			}
		})
	}
	workers.Wait()
	_, err := f.h.Store.List(f.ctx)
	f.must(err)
	f.appendMany(1)
	f.verify()
}

func (f *fixture) useContended(tp store.TopicPartition, remove bool) error {
	if remove {
		return f.h.Store.Delete(f.ctx, tp)
	}
	l, err := f.h.Store.Open(f.ctx, tp, 1, f.h.Config)
	if err != nil {
		return err
	}
	ended := func(err error) bool { return err == nil || errors.Is(err, store.ErrClosed) }
	if _, err := l.Append(f.ctx, mustBuild(f.T, "k", "v")); !ended(err) {
		return err
	}
	done := make(chan error, 1)
	l.Flush(func(err error) { done <- err })
	if err := <-done; !ended(err) {
		return err
	}
	start, end := l.Bounds()
	r, err := l.Read(f.ctx, store.ReadRequest{Offset: start, NextOffset: end, MaxBytes: 1 << 20, MinOne: true})
	r.Release()
	if !ended(err) {
		return err
	}
	return l.Close()
}

// testEpochRace lets owners of growing epochs append until they are fenced.
// Their batches must lie in the log in the order of the epochs.
func testEpochRace(f *fixture) {
	var owners sync.WaitGroup
	for epoch := f.epoch + 1; epoch < f.epoch+20; epoch++ {
		l := f.open(epoch)
		appended := make(chan struct{})
		owners.Go(func() {
			defer close(appended)
			for i := range 30 {
				_, err := l.Append(f.ctx, mustBuild(f.T, "k", "v"))
				if errors.Is(err, store.ErrFenced) {
					return
				}
				assert.NoError(f, err, "append in epoch %d", epoch)
				if i == 0 {
					appended <- struct{}{}
				}
			}
		})
		<-appended
	}
	owners.Wait()
	recs := f.content()
	for i := 1; i < len(recs); i++ {
		if recs[i].epoch < recs[i-1].epoch {
			f.Fatalf("%v after %v", recs[i], recs[i-1])
		}
	}
	f.verifyEpochs(recs)
}
