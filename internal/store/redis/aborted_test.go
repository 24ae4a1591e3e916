package redis

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/store"
)

// transactional makes a batch of a transaction, marker one that ends it.
func (b *bed) transactional(id int64, sequence int32) record.Batch {
	b.Helper()
	t := record.PlainTemplate()
	t.ProducerID, t.ProducerEpoch, t.BaseSequence, t.Transactional = id, 0, sequence, true
	batch, err := record.Build(t, []record.Record{{Timestamp: 5, Key: []byte("k"), Value: []byte("v")}})
	must(b.T, err)
	return batch
}

func (b *bed) marker(id int64, commit bool) record.Batch {
	b.Helper()
	batch, err := record.BuildMarker(id, 0, record.Marker{Commit: commit, CoordinatorEpoch: 2}, 6)
	must(b.T, err)
	return batch
}

func (b *bed) wantAborted(l store.Log, want ...store.Aborted) {
	b.Helper()
	got, err := l.Aborted(b.ctx, 0, math.MaxInt64)
	must(b.T, err)
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		b.Errorf("aborted %+v, want %+v", got, want)
	}
}

// TestMarkersInThePipeline begins data and markers together, so that they share
// transactions or build upon one another.
func TestMarkersInThePipeline(t *testing.T) {
	b := newBed(t, inBatches)
	l := b.open(1)
	done := make(chan error, 1000)
	var want []store.Aborted
	for i := range int64(300) {
		id := 1 + i%3
		for _, batch := range []record.Batch{b.transactional(id, int32(i/3)), b.marker(id, i%2 == 0)} {
			l.Begin(b.ctx, batch, func(_ store.Appended, err error) { done <- err })
		}
		if i%2 != 0 {
			want = append(want, store.Aborted{ProducerID: id, FirstOffset: 2 * i, LastOffset: 2*i + 1})
		}
	}
	for range 600 {
		must(t, <-done)
	}
	b.wantAborted(l, want...)
	other := b.newStore(single(t), Options{})
	b.wantAborted(b.openIn(other, 2), want...)
	if n := b.do("ZCARD", b.keys().aborted); n != "150" {
		t.Errorf("%s in Redis", n)
	}
	l = b.openIn(b.store, 3)
	must(t, l.Trim(b.ctx, want[100].LastOffset))
	if n := b.do("ZCARD", b.keys().aborted); n != "50" {
		t.Errorf("%s in Redis after a trim to a marker", n)
	}
	must(t, l.Trim(b.ctx, want[100].LastOffset+1))
	b.wantAborted(l, want[101:]...)
	if n := b.do("ZCARD", b.keys().aborted); n != "49" {
		t.Errorf("%s in Redis after the trim", n)
	}
	must(t, b.store.Delete(b.ctx, b.at))
	if n := b.do("EXISTS", b.keys().aborted); n != "0" {
		t.Error("they outlive their log")
	}
}

// TestOpenTransactionsAreNotForgotten lets eight days pass.
func TestOpenTransactionsAreNotForgotten(t *testing.T) {
	b := newBed(t, inBatches)
	var passed atomic.Int64
	b.store = b.newStore(single(t), Options{Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }})
	l := b.open(1)
	b.append(l, b.transactional(7, 0))
	b.append(l, b.produced(8))
	passed.Store(int64(8 * 24 * time.Hour))
	must(t, l.Retain(b.ctx, store.Retention{Now: time.Now(), MaxAge: -1, MaxBytes: -1}))
	if ids := b.producerIDs(l); len(ids) != 1 || ids[0] != 7 {
		t.Errorf("producers %v after eight days", ids)
	}
	state := b.do("HGET", b.keys().producers, "7")
	_, rest, _ := strings.Cut(state, " ")
	b.do("HSET", b.keys().producers, "7", "1000 "+rest)
	if ids := b.producerIDs(b.open(2)); len(ids) != 1 {
		t.Errorf("producers %v, one of them of 1970 with an open transaction", ids)
	}
}

// TestAMarkerIsRefusedAsAWhole makes one of the two keys unfit, so that neither the
// aborted transaction nor the producer may show what was not appended.
func TestAMarkerIsRefusedAsAWhole(t *testing.T) {
	for name, key := range map[string]func(keys) string{
		"Producers": func(k keys) string { return k.producers }, "Aborted": func(k keys) string { return k.aborted },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, inBatches)
			l := b.open(1)
			b.append(l, b.transactional(7, 0))
			spoilt := key(b.keys())
			kept, _ := b.try("DUMP", spoilt)
			b.do("DEL", spoilt)
			b.do("SET", spoilt, "somebody else's")
			if _, err := l.Append(b.ctx, b.marker(7, false)); !errors.Is(err, store.ErrStorage) {
				t.Errorf("append: %v", err)
			}
			b.do("DEL", spoilt)
			if name == "Producers" {
				b.do("RESTORE", spoilt, "0", kept)
			}
			l = b.open(2)
			b.wantAborted(l)
			if _, end := l.Bounds(); end != 1 {
				t.Errorf("log ends at %d", end)
			}
			b.append(l, b.marker(7, false))
			b.wantAborted(l, store.Aborted{ProducerID: 7, FirstOffset: 0, LastOffset: 1})
		})
	}
}

// TestProducersOfOldBrokersAreRead reads what brokers without transactions wrote,
// and writes the same where there are none.
func TestProducersOfOldBrokersAreRead(t *testing.T) {
	for text, want := range map[string]store.Producer{
		"1000 3 5;0 1 10 11 4":      {ID: 9, Epoch: 3, LastTimestamp: 5, CoordinatorEpoch: -1, TxnFirst: store.NoTxn},
		"1000 3 5 2 -1;0 1 10 11 4": {ID: 9, Epoch: 3, LastTimestamp: 5, CoordinatorEpoch: 2, TxnFirst: store.NoTxn},
		"1000 3 5 -1 8;0 1 10 11 4": {ID: 9, Epoch: 3, LastTimestamp: 5, CoordinatorEpoch: -1, TxnFirst: 8},
	} {
		want.Batches = []store.ProducerBatch{{LastSequence: 1, BaseOffset: 10, LastOffset: 11, Timestamp: 4}}
		p, err := parseProducer("9", text)
		if err != nil || !reflect.DeepEqual(p.Producer, want) {
			t.Errorf("%q is %+v (%v), want %+v", text, p, err, want)
		}
		if again := formatProducer(p); again != text {
			t.Errorf("%q is written as %q", text, again)
		}
	}
	for _, text := range []string{"1 2 3 4", "1 2 3 4 5 6", "", "1 2 3 x 5"} {
		if _, err := parseProducer("9", text); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "1:2", "1:2:3:4", "a:2:3"} {
		if _, err := parseAborted(text); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Someone may delete the keys of a log by hand, and forget one. What it says of a log
// that is no more must not be believed of the next, however long that becomes.
func TestAbortedTransactionsOfAnEarlierLifeAreNotBelieved(t *testing.T) {
	for name, deleted := range map[string]func(keys) []string{
		"the stream":            func(k keys) []string { return []string{k.stream} },
		"all but the set":       func(k keys) []string { return []string{k.stream, k.meta, k.producers} },
		"the stream and a trim": func(k keys) []string { return []string{k.stream, k.producers} },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, inBatches)
			l := b.open(1)
			for i := range 3 {
				b.append(l, b.transactional(7, int32(i)))
				b.append(l, b.marker(7, false))
			}
			must(t, l.Close())
			b.do(append([]string{"DEL"}, deleted(b.keys())...)...)
			l = b.open(2)
			b.wantAborted(l)
			for range 10 {
				b.append(l, b.valued("a committed record"))
			}
			at := b.append(l, b.transactional(8, 0))
			b.append(l, b.marker(8, false))
			want := store.Aborted{ProducerID: 8, FirstOffset: at.BaseOffset, LastOffset: at.BaseOffset + 1}
			b.wantAborted(l, want)
			b.wantAborted(b.open(3), want)
		})
	}
}
