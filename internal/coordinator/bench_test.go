package coordinator

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/machine"
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

func swiftly(b *testing.B) *Coordinator { return swiftlyWith(b, nil) }

func swiftlyWith(b *testing.B, notes func(int32, []machine.Note)) *Coordinator {
	cfg := group.DefaultConfig()
	cfg.InitialDelay = 0
	c := New(Options{
		Core: group.Definition(func() group.Config { return cfg }),
		Log:  func(int32) Log { return &swift{} }, Logger: slog.New(slog.DiscardHandler), Notes: notes,
	})
	c.Lead([]int32{0})
	b.Cleanup(c.Close)
	return c
}

// joinAlone has a client form a group, and leave what was there before; its heartbeat is
// returned.
func joinAlone(b *testing.B, c *Coordinator, group string) kmsg.Request {
	from := Client{ID: "c", Host: "10.0.0.1"}
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.ProtocolType, join.SessionTimeoutMillis = 3, group, "consumer", 600_000
	join.RebalanceTimeoutMillis = 600_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	joined := c.Do(b.Context(), group, from, join).(*kmsg.JoinGroupResponse)
	if group != "g" {
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group, leave.MemberID = group, joined.MemberID
		c.Do(b.Context(), group, from, leave)
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Version, beat.Group, beat.MemberID, beat.Generation = 4, group, joined.MemberID, joined.Generation
	return beat
}

func BenchmarkHeartbeat(b *testing.B) {
	c, from := swiftly(b), Client{ID: "c", Host: "10.0.0.1"}
	beat := joinAlone(b, c, "g")
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

// BenchmarkHeartbeatBesideNotes is a heartbeat while another client of the shard makes
// its group rebalance all the time, and what is told of that takes a while.
func BenchmarkHeartbeatBesideNotes(b *testing.B) {
	c, from := swiftlyWith(b, func(int32, []machine.Note) {
		for began := time.Now(); time.Since(began) < 50*time.Microsecond; {
		}
	}), Client{ID: "c", Host: "10.0.0.1"}
	beat := joinAlone(b, c, "g")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				joinAlone(b, c, "other")
			}
		}
	}()
	for b.Loop() {
		if resp := c.Do(b.Context(), "g", from, beat).(*kmsg.HeartbeatResponse); resp.ErrorCode != 0 {
			b.Fatal(resp.ErrorCode)
		}
	}
	close(stop)
	<-stopped
}
