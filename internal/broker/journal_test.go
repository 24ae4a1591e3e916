package broker

import (
	"context"
	"fmt"
	"strings"
	"testing"

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
