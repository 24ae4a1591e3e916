package facts

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/assert"
	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/store/mem"
	"muster/internal/watch/explain"
	"muster/internal/web/problem"
)

// filled returns a partition with one batch of records, and how to close it.
func filled(t *testing.T, records ...record.Record) (p *partition.Partition, end func()) {
	t.Helper()
	s := mem.New()
	m := partition.NewManager(partition.Options{Store: s, Self: 1, Logger: slog.New(slog.DiscardHandler)})
	end = func() {
		_ = m.Close(context.Background())
		_ = s.Close()
	}
	t.Cleanup(end)
	before := metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1})
	edit := before.Edit()
	edit.PutTopic(metadata.Topic{Name: "orders", ID: metadata.TopicID{1}, Partitions: []metadata.Partition{{Leader: 1}}})
	assert.Must(t, m.Apply(t.Context(), before, edit.Image(), edit.Changed()))
	for i := range records {
		records[i].OffsetDelta = int32(i)
	}
	tpl := record.PlainTemplate()
	tpl.Codec = record.ZSTD
	b, err := record.Build(tpl, records)
	assert.Must(t, err)
	p = m.Get("orders", 0)
	done := make(chan partition.Appended, 1)
	p.Append(t.Context(), b, partition.Produce{Acks: partition.AcksAll}, func(a partition.Appended) { done <- a })
	if at := <-done; at.Err != nil {
		t.Fatal(at.Err)
	}
	return p, end
}

// What a client has packed is not held for the sake of a timestamp, however much it is.
func TestTheTimeOfARecordCostsLittleMemory(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	const large = 64 << 20
	p, _ := filled(t, record.Record{Timestamp: at.UnixMilli()}, record.Record{Timestamp: at.Add(time.Second).UnixMilli()}, record.Record{Timestamp: at.Add(time.Minute).UnixMilli(), Value: make([]byte, large)})
	var before, after runtime.MemStats
	for from, want := range map[int64]time.Time{0: at, 1: at.Add(time.Second), 2: at.Add(time.Minute)} {
		runtime.ReadMemStats(&before)
		got, found := firstTime(t.Context(), p, from)
		runtime.ReadMemStats(&after)
		assert.True(t, found && got.Equal(want), "the record at %d is of %v, %t, want %v", from, got, found, want)
		if took := after.TotalAlloc - before.TotalAlloc; took > large/2 {
			t.Errorf("the time of the record at %d takes %d bytes", from, took)
		}
	}
	if got, found := firstTime(t.Context(), p, 3); found {
		t.Errorf("at the end there is one of %v", got)
	}
}

// What cannot be read because this broker does not have it any more is refused in the words
// of the Kafka protocol, by which the API knows that another try may help.
func TestAJournalThatMovesAwayMayBeTriedAgain(t *testing.T) {
	p, end := filled(t, record.Record{Value: []byte("x")})
	end()
	s := journalSearch{page: &JournalPage{}}
	_, reading := eachBatch(context.Background(), p, 0, readBytes, func(record.Batch) error { return nil })
	for what, err := range map[string]error{"a look for a time": s.read(context.Background(), p, journalBytes), "reading": reading} {
		var refused *problem.Refused
		if !errors.As(err, &refused) || refused.Code != kerr.NotLeaderForPartition.Code || refused.Name != kerr.NotLeaderForPartition.Message || refused.Message == "" {
			t.Errorf("%s ends with %#v", what, err)
		}
	}
}

// What is dropped for the limit is told.
func TestASearchOfTheJournalSaysWhetherItDroppedEntries(t *testing.T) {
	for found, want := range map[int]bool{0: false, 2: false, 3: true, 4: true, 9: true} {
		s := journalSearch{JournalQuery: JournalQuery{Limit: 2}, page: &JournalPage{}}
		for range found {
			s.page.Entries = append(s.page.Entries, explain.Entry{})
			s.trim(s.Limit)
		}
		s.trim(-s.Limit)
		assert.True(t, len(s.page.Entries) == min(found, 2) && s.page.Partly == want, "of %d there are %d, more %t", found, len(s.page.Entries), s.page.Partly)
	}
}

// A partition is found by time as a whole batch; entries before the time are left out, and
// those of other groups.
func TestASearchOfTheJournalTakesWhatIsAskedFor(t *testing.T) {
	since := time.UnixMilli(1_700_000_000_000).UTC()
	at := func(d time.Duration) []byte {
		text, err := json.Marshal(journal.Entry{Time: since.Add(d), Group: "g", Kind: journal.KindSettled})
		assert.Must(t, err)
		return text
	}
	s := journalSearch{JournalQuery: JournalQuery{Group: "g", Since: since, Limit: 10}, page: &JournalPage{}}
	for _, r := range []record.Record{
		{Key: []byte("g"), Value: at(-time.Millisecond)}, {Key: []byte("g"), Value: at(0)}, {Key: []byte("other"), Value: at(1)},
		{Key: []byte("g"), Value: []byte("of a later version")}, {Key: []byte("g"), Value: at(time.Minute)},
	} {
		s.take(&r)
	}
	if got := s.page.Entries; len(got) != 2 || !got[0].Time.Equal(since) || !got[1].Time.Equal(since.Add(time.Minute)) {
		t.Errorf("found are %+v", got)
	}
}
