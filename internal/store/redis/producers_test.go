package redis

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/store"
)

func (b *bed) produced(id int64) record.Batch {
	b.Helper()
	tmpl := record.PlainTemplate()
	tmpl.ProducerID, tmpl.ProducerEpoch, tmpl.BaseSequence = id, 3, 0
	batch, err := record.Build(tmpl, []record.Record{{Timestamp: 5, Key: []byte("k"), Value: []byte("v")}})
	must(b.T, err)
	return batch
}

func (b *bed) producerIDs(l store.Log) (ids []int64) {
	b.Helper()
	producers, _, err := l.Producers(b.ctx)
	must(b.T, err)
	for _, p := range producers {
		ids = append(ids, p.ID)
	}
	return ids
}

// TestIdleProducersAreForgotten lets eight days pass, for a log that stays open
// and for one that is opened again.
func TestIdleProducersAreForgotten(t *testing.T) {
	for name, cfg := range allLayouts {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			var passed atomic.Int64
			b.store = b.newStore(single(t), Options{Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }})
			l := b.open(1)
			b.append(l, b.produced(7))
			retention := store.Retention{Now: time.Now(), MaxAge: -1, MaxBytes: -1}
			must(t, l.Retain(b.ctx, retention))
			if ids := b.producerIDs(l); len(ids) != 1 {
				t.Errorf("producers %v", ids)
			}
			passed.Store(int64(8 * 24 * time.Hour))
			must(t, l.Retain(b.ctx, retention))
			if ids := b.producerIDs(l); len(ids) != 0 {
				t.Errorf("producers %v after eight days", ids)
			}
			l = b.open(2)
			if ids := b.producerIDs(l); len(ids) != 0 {
				t.Errorf("producers %v of the log opened again", ids)
			}
			b.append(l, b.produced(8))
			fields := "1"
			if name == "Indexed" { // They are in the index, and now and then in a snapshot, which says how far it goes.
				must(t, l.SaveProducers(b.ctx, nil, 0))
				fields = "2"
			}
			state := b.do("HGET", b.keys().producers, "8")
			when, rest, _ := strings.Cut(state, " ")
			b.do("HSET", b.keys().producers, "8", when[:len(when)-4]+"0000 "+rest, "9", "1000 "+rest)
			if ids := b.producerIDs(b.open(3)); len(ids) != 1 || ids[0] != 8 {
				t.Errorf("producers %v, one of them of 1970", ids)
			}
			if n := b.do("HLEN", b.keys().producers); n != fields {
				t.Errorf("%s fields about producers in Redis", n)
			}
		})
	}
}

// TestSmallRecordsThenLargeOnes reads over the border between them, where a
// guess by the size of the former is far off.
func TestSmallRecordsThenLargeOnes(t *testing.T) {
	for name, cfg := range allLayouts {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			l := b.open(1)
			for range 300 {
				b.append(l, b.valued("small"))
			}
			for range 20 {
				b.append(l, b.valued(strings.Repeat("x", 1<<20)))
			}
			for range 300 {
				b.append(l, b.valued("small"))
			}
			for range 2 {
				if got := b.values(l); len(got) != 620 || len(got[310]) != 1<<20 {
					t.Errorf("%d records", len(got))
				}
				l = b.open(2)
			}
		})
	}
}
