package partition

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/store/mem"
)

// BenchmarkGet finds partitions of a thousand topics for many connections at once, as
// each fetch and produce does for each of its partitions.
func BenchmarkGet(b *testing.B) {
	edit := metadata.NewImage(&config.Broker{}).Edit()
	var names []string
	for i := range 1000 {
		t := metadata.Topic{Name: fmt.Sprintf("topic-%d", i), ID: metadata.TopicID{1, byte(i >> 8), byte(i)}, Partitions: []metadata.Partition{{LeaderEpoch: 1}}}
		metadata.FixSettings(&t)
		edit.PutTopic(t)
		names = append(names, t.Name)
	}
	m := NewManager(Options{Store: mem.New(), Logger: slog.New(slog.DiscardHandler)})
	must(b, m.Apply(context.Background(), metadata.NewImage(&config.Broker{}), edit.Image(), names))
	b.SetParallelism(32)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if m.Get(names[i%len(names)], 0) == nil {
				b.Error("not found")
				return
			}
		}
	})
}
