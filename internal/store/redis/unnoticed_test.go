package redis

import (
	"errors"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

// The server that answers a flush may be a replica that has become the primary without the
// last appends: its token is an older one. Then the log has failed, and not only the flush.
func TestAFlushNoticesThatAnAppendWasLost(t *testing.T) {
	b := newBed(t, store.LogConfig{Layout: store.LayoutLog, Replicas: 2})
	b.store = b.newStore(single(t), Options{ReplicaTimeout: time.Millisecond}) // There are none, so no one waits for them.
	l := b.open(1).(batchLog)
	for range 3 {
		b.append(l, b.valued("v"))
	}
	token := b.do("HGET", b.keys().meta, "n")
	b.do("HSET", b.keys().meta, "n", l.token(l.acknowledged()-1))
	done := make(chan error, 1)
	l.Flush(func(err error) { done <- err })
	if err := <-done; !errors.Is(err, store.ErrNotReplicated) {
		t.Errorf("a flush that misses an append: %v", err)
	}
	b.do("HSET", b.keys().meta, "n", token)
	if _, err := l.Append(b.ctx, b.valued("v")); !errors.Is(err, store.ErrFailed) {
		t.Errorf("an append after it: %v", err)
	}
}

// What a broker has copied may lack what another has kept, or have what it has dropped.
func TestACompactionGivesUpIfAnotherWasQuicker(t *testing.T) {
	b := newBed(t, inBatches)
	m := &meddler{Client: connect(t, single(t))}
	m.after = func(words []string) {
		if len(words) > 1 && words[1] == copyScript {
			b.do("HSET", b.keys().meta, "cleaned", "2")
		}
	}
	s := New(m, Options{Prefix: b.prefix})
	t.Cleanup(func() { _ = s.Close() })
	l, err := s.OpenShared(b.ctx, b.at)
	must(t, err)
	var end store.Seen
	add := func(recs ...record.Record) {
		batch := b.batchOf(recs...)
		must(t, l.AppendAt(b.ctx, end, batch))
		end = seen(batch)
	}
	// The first batch becomes another, so that the log is written anew.
	add(record.Record{Key: []byte("twice"), Value: []byte("1")}, record.Record{Key: []byte("once"), Value: []byte("0")})
	add(record.Record{Key: []byte("other"), Value: []byte("0")})
	add(record.Record{Key: []byte("twice"), Value: []byte("2")})
	before := b.do("XRANGE", b.keys().stream, "-", "+")
	if err := l.Compact(b.ctx, end.Next); !errors.Is(err, store.ErrMoved) {
		t.Errorf("a compaction that came too late returned %v", err)
	}
	if after := b.do("XRANGE", b.keys().stream, "-", "+"); after != before {
		t.Errorf("the log was\n%q, is\n%q", before, after)
	}
}

// If a read has found what someone else appended after our append, the end of that does not
// take it back.
func TestAnAppendDoesNotSetTheEndBack(t *testing.T) {
	b := newBed(t, inBatches)
	l := b.open(1).(batchLog)
	b.append(l, b.valued("v"))
	tx := &transaction{from: l.tail, to: l.tail, entries: 1}
	tx.to.next++
	seen := tx.to.next + 5
	l.mu.Lock()
	l.tail.next = seen
	l.mu.Unlock()
	l.commit(tx)
	if _, end := l.Bounds(); end != seen {
		t.Errorf("the log end offset is %d, was %d", end, seen)
	}
}

// What was trimmed while an append was on its way is not counted any more when that has arrived.
func TestAnAppendDoesNotBringBackTheSizeOfWhatWasTrimmed(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1).(indexLog)
	b.append(l, b.valued("trimmed"))
	p := &pending{batch: b.valued("v")}
	assert.MustTrue(t, l.split(p, true) && p.err == nil && p.bytes > 0, "%d bytes, %v", p.bytes, p.err)
	defer l.drop(p)
	tx, err := l.compose([]*pending{p}, nil)
	assert.Must(t, err)
	l.mu.Lock()
	l.tail.size = 0
	l.mu.Unlock()
	l.commit(tx)
	assert.Equal(t, l.tail.size, p.bytes, "bytes of the log")
}

// Of appends on their way one after the other, the second is sent again if the first was refused:
// Redis has all that it has acknowledged, which is not what the first would have written.
func TestAnAppendIsSentAgainIfTheOneBeforeWasRefused(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1).(indexLog)
	b.append(l, b.valued("0"))
	var before *transaction
	for range 2 {
		p := &pending{batch: b.valued("v")}
		assert.MustTrue(t, l.split(p, true) && p.err == nil, "%v", p.err)
		t.Cleanup(func() { l.drop(p) })
		tx, err := l.compose([]*pending{p}, before)
		assert.Must(t, err)
		before = tx
	}
	assert.ErrorIs(t, l.refused("append", before, l.token(l.acknowledged()), "0-0", ""), errTryAgain)
	assert.False(t, errors.Is(l.refused("append", before, l.token(l.acknowledged()-1), "0-0", ""), errTryAgain), "a log that has lost an append is tried again")
}

// A transaction that was refused is sent again if one that it builds upon is on its way.
// That is not so if Redis does not even know what it has acknowledged.
func TestATransactionIsNotSentAgainToARedisThatForgot(t *testing.T) {
	b := newBed(t, inBatches)
	l := b.open(1).(batchLog)
	tx := &transaction{from: tail{counter: 7}, acked: 5}
	if err := l.refused("append", tx, l.token(5), "0-0", ""); !errors.Is(err, errTryAgain) {
		t.Errorf("one that is ahead of what Redis has: %v", err)
	}
	if err := l.refused("append", tx, l.token(4), "0-0", ""); errors.Is(err, errTryAgain) || err == nil {
		t.Errorf("one of a log that has lost an append: %v", err)
	}
}
