package records

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/search"
	"muster/internal/store"
	"muster/internal/store/mem"
)

// A partition that this broker leads and has not opened yet is not with another one: who
// asks is told to try again.
func TestPartitionsThatAreAboutToBeOpenedAreNotElsewhere(t *testing.T) {
	topic := &metadata.Topic{Partitions: []metadata.Partition{{Leader: 1}, {Leader: 2}, {Leader: metadata.NoBroker}}}
	for i, want := range []int32{metadata.NoBroker, 2, metadata.NoBroker} {
		if got := elsewhere(topic, int32(i), 1); got.Partition != int32(i) || got.Broker != want {
			t.Errorf("partition %d: %+v", i, got)
		}
	}
}

// onePartition opens a partition in memory.
func onePartition(t *testing.T) *partition.Partition {
	t.Helper()
	m := partition.NewManager(partition.Options{Store: mem.New(), Self: 1, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	before := metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1})
	edit := before.Edit()
	edit.PutTopic(metadata.Topic{Name: "orders", ID: metadata.TopicID{1}, Partitions: []metadata.Partition{{Leader: 1}}})
	assert.Must(t, m.Apply(t.Context(), before, edit.Image(), edit.Changed()))
	return m.Get("orders", 0)
}

// What a batch takes in memory to be unpacked is taken from what all searches have together.
func TestSearchesPayForWhatTheyUnpack(t *testing.T) {
	p := onePartition(t)
	for codec := record.None; codec <= record.ZSTD; codec++ {
		tpl := record.PlainTemplate()
		tpl.Codec = codec
		b, err := record.Build(tpl, []record.Record{{Value: []byte("v"), Timestamp: time.Now().UnixMilli()}})
		assert.Must(t, err)
		appended := make(chan partition.Appended, 1)
		p.Append(t.Context(), b, partition.Produce{Acks: partition.AcksAll}, func(a partition.Appended) { appended <- a })
		at := <-appended
		assert.MustEqual(t, at.Err, nil)
		l := &recordLog{p: p, memory: newBudget(searchMemory)}
		var held int64
		if _, err := l.Read(t.Context(), at.BaseOffset, 1, func(*search.Record) bool {
			held = searchMemory - l.memory.free
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if want := int64(len(b)) + b.WalkMemory(); held != want || l.memory.free != searchMemory {
			t.Errorf("%v: %d bytes were taken, want %d; %d are left", codec, held, want, l.memory.free)
		}
	}
}

// Of what is decided the log says which transactions were aborted, each from its first record
// to its marker. A producer has one after the other.
func TestRecordsHaveTheStateOfTheirOwnTransaction(t *testing.T) {
	batch := func(producer, at int64, transactional bool) record.Batch {
		t.Helper()
		tpl := record.PlainTemplate()
		tpl.BaseOffset, tpl.ProducerID, tpl.ProducerEpoch, tpl.BaseSequence, tpl.Transactional = at, producer, 0, 0, transactional
		b, err := record.Build(tpl, []record.Record{{Value: []byte("v")}})
		assert.Must(t, err)
		return b
	}
	state := (&recordLog{}).states(true, []store.Aborted{{ProducerID: 7, FirstOffset: 10, LastOffset: 20}, {ProducerID: 7, FirstOffset: 30, LastOffset: 40}})
	for _, c := range []struct {
		producer, at  int64
		transactional bool
		want          search.Transaction
	}{
		{7, 9, true, search.Committed},
		{7, 10, true, search.Aborted},
		{7, 19, true, search.Aborted},
		{7, 21, true, search.Committed},
		{7, 30, true, search.Aborted},
		{7, 41, true, search.Committed},
		{8, 15, true, search.Committed},
		{7, 15, false, search.NoTransaction},
	} {
		assert.Equal(t, state(batch(c.producer, c.at, c.transactional)), c.want, "%+v", c)
	}
}
