package topology

import (
	"fmt"
	"testing"

	"muster/internal/group/schema"
)

// What a topology needs is found out in a step of the shard, again for each image of the
// metadata: so that must not take long for the largest there may be.
func BenchmarkTheLargestTopology(b *testing.B) {
	t := &schema.StreamsTopology{}
	for i := range maxNamed / 4 {
		name := fmt.Sprintf("repartition-%d", i)
		t.Subtopologies = append(t.Subtopologies, schema.Subtopology{ID: fmt.Sprint(i), Sources: []string{"a"}, Sinks: []string{name}, Repartitions: []schema.TopicInfo{{Name: name}}})
	}
	if reason := Check(t); reason != "" {
		b.Fatal(reason)
	}
	for b.Loop() {
		if r := Resolve(t, func(name string) int32 { return int32(len(name)) }); r.Invalid != "" {
			b.Fatal(r.Invalid)
		}
	}
}
