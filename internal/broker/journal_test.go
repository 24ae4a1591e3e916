package broker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/record"
)

// A shard that has loaded has something to say of each of its groups, at once,
// which need not fit into one batch.
func TestTheJournalIsWrittenInBatchesThatFit(t *testing.T) {
	const limit = 10_000
	var entries []journal.Entry
	for i := range 1000 {
		entries = append(entries, journal.Entry{Group: fmt.Sprint(i), Kind: journal.KindLoaded})
	}
	entries[500].Group = strings.Repeat("large", limit)
	var got []string
	for rest := entries; len(rest) > 0; {
		recs, err := groupJournal.encode(rest, limit)
		if err != nil || len(recs) == 0 {
			t.Fatalf("%d records, %v", len(recs), err)
		}
		b, err := record.Build(record.PlainTemplate(), recs)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > limit+record.HeaderSize && len(recs) > 1 {
			t.Errorf("a batch of %d records has %d bytes", len(recs), len(b))
		}
		for _, r := range recs {
			got = append(got, string(r.Key))
		}
		rest = rest[len(recs):]
	}
	for i := range entries {
		if got[i] != entries[i].Group {
			t.Fatalf("record %d is of group %.20q", i, got[i])
		}
	}
	if len(got) != len(entries) {
		t.Errorf("%d records of %d entries", len(got), len(entries))
	}
}

// What happened to a group before the broker stops is in the journal after it.
func TestTheJournalIsWrittenToItsEndWhenTheBrokerStops(t *testing.T) {
	b, err := Open(t.Context(), Config{
		Properties: map[string]string{"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "mem"},
		Logger:     slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	j := newJournal(b, groupJournal)
	const steps = 50
	for range steps {
		j.add([]journal.Entry{{Group: "billing", Kind: journal.KindLoaded}})
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	j.run(stopped)
	p, err := j.partition(t.Context(), "billing")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.HighWatermark(); got != steps {
		t.Errorf("%d entries of %d are in the journal", got, steps)
	}
}

// A topic that is lost right after it was created costs an entry, not the broker.
func TestJournalTopicThatVanishesIsAnError(t *testing.T) {
	made := 0
	got, err := thereOrMade(t.Context(), func() *metadata.Topic { return nil }, func(context.Context) error { made++; return nil })
	if got != nil || err == nil || made != 1 {
		t.Errorf("topic %v, error %v, created %d times", got, err, made)
	}
}

// Requests about partitions are not handled once a stop holds them, and are not waited for.
func TestHeldRequestsAreNotCounted(t *testing.T) {
	var h hold
	if !h.begin(produceRequest) || h.producing.Load() != 1 {
		t.Fatal("Produce is held by a broker that does not stop, or not counted")
	}
	h.end(produceRequest)
	h.close()
	for kind, want := range map[requestKind]bool{produceRequest: false, readRequest: false, otherRequest: true} {
		if got := h.begin(kind); got != want {
			t.Errorf("request of kind %d is handled: %v", kind, got)
		}
	}
	if n := h.producing.Load(); n != 0 {
		t.Errorf("%d Produce requests are counted as being handled", n)
	}
}

// A stop waits for Produce requests that are being handled, but not for ever.
func TestAStopWaitsAWhileForProduceRequests(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: 0, holdPatience / 2: holdPatience / 2, time.Hour: holdPatience} {
		synctest.Test(t, func(t *testing.T) {
			var h hold
			h.begin(produceRequest)
			h.begin(readRequest) // It may wait for as long as it likes.
			time.AfterFunc(took, func() { h.end(produceRequest) })
			began := time.Now()
			h.close()
			if got := time.Since(began); got < want || got > want+2*time.Millisecond {
				t.Errorf("for a request that takes %v it waits %v", took, got)
			}
		})
	}
}
