package disk

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"muster/internal/assert"
	"muster/internal/store"
)

// BenchmarkFlush appends a small batch to each of many logs on a real disk, and makes all
// of them durable.
func BenchmarkFlush(b *testing.B) {
	for _, n := range []int{1, 50, 1000} {
		for name, opts := range map[string]Options{"journal": {}, "segments": {noJournal: true}} {
			b.Run(fmt.Sprintf("%d logs, %s", n, name), func(b *testing.B) {
				benchmarkFlush(b, n, opts)
			})
		}
	}
}

func benchmarkFlush(b *testing.B, n int, opts Options) {
	st, err := Open(b.TempDir(), opts)
	must(b, err)
	defer func() { _ = st.Close() }()
	var logs []store.Log
	for i := range int32(n) {
		l, err := st.Open(context.Background(), store.TopicPartition{Topic: "t", Partition: i}, 0, store.LogConfig{})
		must(b, err)
		logs = append(logs, l)
	}
	round := func() {
		var done sync.WaitGroup
		done.Add(n)
		for _, l := range logs {
			if _, err := l.Append(context.Background(), sample(1, "a small value of a record")); err != nil {
				b.Fatal(err)
			}
			l.Flush(func(err error) {
				assert.NoError(b, err)
				done.Done()
			})
		}
		done.Wait()
	}
	for range 50 { // So many that there is a journal.
		round()
	}
	for b.Loop() {
		round()
	}
}
