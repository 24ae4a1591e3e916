package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"muster/internal/store"
	"muster/internal/store/redis/conn"
)

// composed chooses ids, and makes the entry of the index. What becomes of producers is noted
// when the offsets are certain.
func (l indexLog) composed(tx *transaction, _ int64) {
	tx.producers, tx.aborted = nil, nil
	e := &indexEntry{}
	var count int64
	for _, p := range tx.group {
		if !p.sends() {
			continue
		}
		x := p.indexed(l.epoch)
		if !x.isControl() {
			count += x.count
			tx.to.maxTimestamp = max(tx.to.maxTimestamp, x.maxTimestamp)
		}
		e.batches = append(e.batches, x)
	}
	tx.index = e
	if count == 0 {
		return
	}
	first, err := l.nextID(tx.from.top, count)
	if err != nil {
		tx.err = err
		return
	}
	e.runs = []idRun{{first, count}}
	tx.before, tx.to.top = first.before(), e.runs[0].last()
	tx.to.added += count
}

// indexed makes what the index has of a batch.
func (p *pending) indexed(leaderEpoch int32) indexBatch {
	b := p.batch
	x := indexBatch{
		count: int64(b.LastOffsetDelta()) + 1, leaderEpoch: leaderEpoch, baseTimestamp: b.BaseTimestamp(), maxTimestamp: b.MaxTimestamp(), bytes: p.bytes,
		producerID: b.ProducerID(), producerEpoch: b.ProducerEpoch(), sequence: b.BaseSequence(),
	}
	if b.ProducerID() >= 0 {
		x.flags |= flagProducer
	}
	if b.Transactional() {
		x.flags |= flagTransactional
	}
	if b.Control() {
		x.flags |= flagControl
		x.control = append([]byte(nil), b...)
	} else {
		x.maxTimestamp = max(p.latest, x.maxTimestamp)
	}
	return x
}

// commands makes the commands of a transaction.
func (l indexLog) commands(tx *transaction) []rueidis.Completed {
	b, k, e := l.store.client.B(), l.keys, tx.index
	first, last, count := "-", "", int64(0)
	if len(e.runs) > 0 {
		first, last, count = e.runs[0].first.String(), e.runs[0].last().String(), e.runs[0].count
	}
	args := []string{
		l.token(tx.from.counter), tx.before.String(), l.wantTime(), decimal(tx.from.next), decimal(tx.to.next - tx.from.next), decimal(count),
		last, first, decimal(tx.to.maxTimestamp), decimal(tx.to.size - tx.from.size), rueidis.BinaryString(e.body()), "n", l.token(tx.to.counter),
	}
	args = append(args, rareArgs(tx)...)
	cmds := l.guarded(int(count), appendIndexScript, []string{k.stream, k.meta, k.index, k.held}, args)
	if count > 0 {
		id := e.runs[0].first
		ids := make([]byte, 0, count*idLength)
		for _, p := range tx.group {
			start := 0
			for _, end := range p.ends {
				n := len(ids)
				ids = id.append(ids)
				cmds = append(cmds, b.Arbitrary("XADD").Keys(k.stream).Args("NOMKSTREAM", rueidis.BinaryString(ids[n:])).Args(p.words[start:end]...).Build())
				start, id = end, id.after()
			}
		}
	}
	tx.adds = int(count)
	return append(cmds, b.Renamenx().Key(k.held).Newkey(k.stream).Build(), b.Exec().Build())
}

// accepted reads whether the script has taken the transaction, and where it went.
func (l indexLog) accepted(tx *transaction, script reply, added []rueidis.RedisMessage) error {
	what, s := "append "+l.keys.stream, script.list()
	switch {
	case script.m.IsInt64() || len(s) == 3:
		return wantAdded(what, added)
	case len(s) == 5 && s[0].text() == "ok":
		top, state, err := parseIndexState(s[4].text())
		if err != nil {
			return err
		}
		tx.truth = &indexTruth{s[3].int(), top, state}
		return wantAdded(what, added)
	case len(s) != 6:
		return fmt.Errorf("%w: %s: reply of %d values", store.ErrStorage, what, len(s))
	}
	return l.declined(what, tx, s[3].text(), s[4].text(), s[5].text())
}

// declined says why a transaction was refused. If others have added entries with the ids that
// it chose, or very many, they are adopted, and it is sent again.
func (l indexLog) declined(what string, tx *transaction, token, lastID, why string) error {
	if token != l.token(tx.from.counter) {
		return l.refused(what, tx, token, lastID, why)
	}
	last, err := parseID(lastID)
	if err != nil {
		return fmt.Errorf("%w: %s: the stream is gone: %s%s", store.ErrStorage, what, why, conn.WayOut(why))
	}
	if len(tx.index.runs) == 0 || strings.HasPrefix(why, l.keys.index) || last.less(tx.index.runs[0].first) && why != adoptFirst && !strings.Contains(why, "smaller than") {
		return fmt.Errorf("%w: %s: %s%s", store.ErrStorage, what, why, conn.WayOut(why))
	}
	l.pace.conflict()
	if err := l.adoptAll(context.Background(), last); err != nil {
		return err
	}
	return errTryAgain
}

// commit takes a transaction that Redis has executed into the handle, with the offsets that
// it got.
func (l indexLog) commit(tx *transaction) {
	if tx.entries == 0 {
		return
	}
	l.pace.success()
	l.mu.Lock()
	before := l.tail
	records := tx.to.next - tx.from.next
	l.tail = tx.to
	if t := tx.truth; t != nil {
		l.tail.apply(indexTruth{t.next + records, tx.to.top, indexState{t.added + tx.index.records(), max(t.maxTimestamp, tx.to.maxTimestamp), t.size + tx.to.size - tx.from.size}})
		if tx.to.top.less(t.top) {
			l.tail.top = t.top
		}
		if before.added < t.added { // No entry that it has adopted is larger than all of them.
			l.tail.largest = max(l.tail.largest, t.size-before.size)
		}
	} else {
		l.tail.size += before.size - tx.from.size
	}
	l.tail.count = before.count + l.tail.added - before.added
	tx.index.setNext(l.tail.next)
	tx.index.maxTimestamp, tx.index.added = l.tail.maxTimestamp, l.tail.added
	next := tx.index.base
	for _, p := range tx.group {
		if p.sends() {
			p.base = next
			p.batch.SetBaseOffset(next)
			next = p.batch.LastOffset() + 1
		}
	}
	l.noteEntry(tx.index, l.clock.now(l.store.now()))
	l.cache.add(*tx.index)
	due := l.unsaved >= snapshotEvery
	l.mu.Unlock()
	tx.prev = nil
	if due {
		_ = l.snapshot(context.Background()) // What fails is tried again after the next one.
	}
}
