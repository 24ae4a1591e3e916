package handler

import (
	"testing"
	"time"

	"muster/internal/auth"
)

// BenchmarkFetchTurns is what 64 connections share of their fetches of 100 partitions:
// begin and finish, with a session each and without.
func BenchmarkFetchTurns(b *testing.B) {
	for _, c := range []struct {
		name  string
		epoch int32
	}{{"full", epochFinal}, {"session", epochInitial}} {
		b.Run(c.name, func(b *testing.B) {
			s := newSessions(1000, time.Now)
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				req := fetchRequest(11, 0, c.epoch, manyPartitions(100)...)
				told := 0
				for pb.Next() {
					turn, err := s.begin(req, nobody{}, auth.Anonymous)
					if err != nil {
						b.Error(err)
						return
					}
					turn.finish(turn.parts, func(*fetchPart) { told++ })
					if turn.id != 0 {
						req = fetchRequest(11, turn.id, turn.session.epoch)
					}
				}
			})
		})
	}
}
