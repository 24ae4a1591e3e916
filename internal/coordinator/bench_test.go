package coordinator

import (
	"context"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
)

// swift is a log that keeps nothing, at once.
type swift struct{ next int64 }

func (l *swift) Append(_ context.Context, _ []byte, done func(int64, error)) {
	l.next++
	done(l.next-1, nil)
}
func (*swift) Reopen(context.Context) error                { return nil }
func (*swift) MaxBatch() int                               { return 1 << 20 }
func (*swift) Start() int64                                { return 0 }
func (*swift) Read(context.Context, int64) ([]byte, error) { return nil, nil }

func swiftly(b *testing.B) *Coordinator {
	cfg := group.DefaultConfig()
	cfg.InitialDelay = 0
	c := New(Options{
		Core: group.Definition(func() group.Config { return cfg }),
		Log:  func(int32) Log { return &swift{} }, Logger: slog.New(slog.DiscardHandler),
	})
	c.Lead([]int32{0})
	b.Cleanup(c.Close)
	return c
}

func BenchmarkHeartbeat(b *testing.B) {
	c, from := swiftly(b), Client{ID: "c", Host: "10.0.0.1"}
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.ProtocolType, join.SessionTimeoutMillis = 3, "g", "consumer", 600_000
	join.RebalanceTimeoutMillis = 600_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	joined := c.Do(b.Context(), "g", from, join).(*kmsg.JoinGroupResponse)
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Version, beat.Group, beat.MemberID, beat.Generation = 4, "g", joined.MemberID, joined.Generation
	b.ReportAllocs()
	for b.Loop() {
		if resp := c.Do(b.Context(), "g", from, beat).(*kmsg.HeartbeatResponse); resp.ErrorCode != 0 {
			b.Fatal(resp.ErrorCode)
		}
	}
}

func BenchmarkCommit(b *testing.B) {
	c, from, req := swiftly(b), Client{ID: "c", Host: "10.0.0.1"}, commitRequest(7)
	b.ReportAllocs()
	for b.Loop() {
		if code := commitCode(c.Do(b.Context(), "g", from, req)); code != 0 {
			b.Fatal(code)
		}
	}
}
