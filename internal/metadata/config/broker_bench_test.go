package config

import "testing"

// BenchmarkSettings asks for what a fetch and a produce ask for: one number that is set,
// one that falls back on another, and a truth value that is not set.
func BenchmarkSettings(b *testing.B) {
	s, err := NewBroker(map[string]string{"fetch.max.bytes": "1000000", "log.retention.hours": "3"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if s.Int("fetch.max.bytes") != 1000000 || s.Duration("log.retention.ms") == 0 || !s.Bool("auto.create.topics.enable") {
			b.Fatal("other settings")
		}
	}
}
