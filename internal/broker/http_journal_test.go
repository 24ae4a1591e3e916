package broker

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/watch/explain"
	"muster/internal/web"
)

// filled returns a partition with some records, and how to close its broker.
func filled(t *testing.T, records ...*kgo.Record) (p *partition.Partition, end func()) {
	t.Helper()
	b, err := Open(t.Context(), Config{
		Properties: map[string]string{"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "mem", "num.partitions": "1"}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	end = func() { _ = b.Close() }
	t.Cleanup(end)
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("orders"),
		kgo.ProducerBatchMaxBytes(99<<20), kgo.BrokerMaxWriteBytes(100<<20), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return b.manager.Get("orders", 0), end
}

// What a client has packed is not held for the sake of a timestamp, however much it is.
func TestTheTimeOfARecordCostsLittleMemory(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	const large = 64 << 20
	p, _ := filled(t, &kgo.Record{Timestamp: at}, &kgo.Record{Timestamp: at.Add(time.Second)}, &kgo.Record{Timestamp: at.Add(time.Minute), Value: make([]byte, large)})
	var before, after runtime.MemStats
	for from, want := range map[int64]time.Time{0: at, 1: at.Add(time.Second), 2: at.Add(time.Minute)} {
		runtime.ReadMemStats(&before)
		got, found := firstTime(t.Context(), p, from)
		runtime.ReadMemStats(&after)
		if !found || !got.Equal(want) {
			t.Errorf("the record at %d is of %v, %t, want %v", from, got, found, want)
		}
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
	p, end := filled(t, &kgo.Record{Value: []byte("x")})
	end()
	s := journalSearch{page: &web.JournalPage{}}
	_, reading := eachBatch(context.Background(), p, 0, readBytes, func(record.Batch) error { return nil })
	for what, err := range map[string]error{"a look for a time": s.read(context.Background(), p, journalBytes), "reading": reading} {
		var refused *web.RefusedError
		if !errors.As(err, &refused) || refused.Code != kerr.NotLeaderForPartition.Code || refused.Name != kerr.NotLeaderForPartition.Message || refused.Message == "" {
			t.Errorf("%s ends with %#v", what, err)
		}
	}
}

// What is dropped for the limit is told.
func TestASearchOfTheJournalSaysWhetherItDroppedEntries(t *testing.T) {
	for found, want := range map[int]bool{0: false, 2: false, 3: true, 4: true, 9: true} {
		s := journalSearch{JournalQuery: web.JournalQuery{Limit: 2}, page: &web.JournalPage{}}
		for range found {
			s.page.Entries = append(s.page.Entries, explain.Entry{})
			s.trim(s.Limit)
		}
		s.trim(-s.Limit)
		if len(s.page.Entries) != min(found, 2) || s.page.Partly != want {
			t.Errorf("of %d there are %d, more %t", found, len(s.page.Entries), s.page.Partly)
		}
	}
}
