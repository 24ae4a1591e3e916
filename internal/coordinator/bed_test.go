package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/metadata"
	"muster/internal/record"
)

// gatedLog is a log in memory whose appends become durable when the test says
// so.
type gatedLog struct {
	mu      sync.Mutex
	data    []byte
	next    int64
	held    bool
	pending []func(error)
	lost    bool           // what is held and then fails is stored all the same
	late    []record.Batch // stored when the log is opened again
	reopens int
	max     int
	fail    error
	appends int
	stuck   chan struct{}          // if there is one, appends begin when it is closed
	givenUp error                  // of contexts that ended before an append
	slow    time.Duration          // of reads
	asked   atomic.Pointer[func()] // called once when someone asks for MaxBatch
	image   atomic.Pointer[metadata.Image]
}

func (l *gatedLog) Append(ctx context.Context, batch []byte, done func(int64, error)) {
	if l.stuck != nil {
		<-l.stuck
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appends++
	l.givenUp = errors.Join(l.givenUp, ctx.Err())
	if l.fail != nil {
		err := l.fail
		l.fail = nil
		done(-1, err)
		return
	}
	b := record.Batch(batch)
	b.SetBaseOffset(l.next)
	store := func(err error) {
		switch {
		case err == nil:
			l.data = append(l.data, b...)
		case l.lost:
			l.late = append(l.late, b)
		}
		done(b.BaseOffset(), err)
	}
	l.next = b.LastOffset() + 1
	if l.held {
		l.pending = append(l.pending, store)
		return
	}
	store(nil)
}

// settle ends the wait of all held appends.
func (l *gatedLog) settle(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, done := range l.pending {
		done(err)
	}
	l.pending = nil
}

func (l *gatedLog) set(fn func(*gatedLog)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn(l)
}

func (l *gatedLog) Start() int64 { return 0 }

func (l *gatedLog) MaxBatch() int {
	if asked := l.asked.Swap(nil); asked != nil {
		(*asked)()
	}
	return l.max
}

// Reopen shows what is in the log and was not known to be.
func (l *gatedLog) Reopen(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reopens++
	for _, b := range l.late {
		l.data = append(l.data, b...)
	}
	l.late = nil
	return nil
}

func (l *gatedLog) Read(_ context.Context, offset int64) ([]byte, error) {
	pass(l.slow)
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.data
	for len(rest) > 0 {
		b, after, err := record.Next(rest)
		if err != nil {
			return nil, err
		}
		if b.LastOffset() >= offset {
			return rest, nil
		}
		rest = after
	}
	return nil, nil
}

// pass lets time pass on the clock of the bubble that the test runs in.
func pass(d time.Duration) { <-time.After(d) }

// inBubble runs a test on a clock of its own.
func inBubble(t *testing.T, log *gatedLog, test func(t *testing.T, c *Coordinator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := New(options(t, log))
		c.Lead([]int32{0})
		synctest.Wait()
		test(t, c)
		c.Close()
	})
}

// options are those of a coordinator of groups.
func options(t *testing.T, log *gatedLog) Options {
	cfg := group.DefaultConfig()
	cfg.InitialDelay = 0
	return Options{
		Core: group.Definition(func() group.Config { return cfg }),
		Log:  func(int32) Log { return log }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Image: log.image.Load,
	}
}

func commitRequest(offset int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, "g", -1
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = offset
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	return req
}

func commitCode(r kmsg.Response) int16 {
	return r.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
}

func fetchRequest() *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = 8
	req.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g", Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", Partitions: []int32{0}}}}}
	return req
}

func fetched(r kmsg.Response) int64 {
	return r.(*kmsg.OffsetFetchResponse).Groups[0].Topics[0].Partitions[0].Offset
}

// async has a request handled in the background.
func async(t *testing.T, c *Coordinator, req kmsg.Request) chan kmsg.Response {
	out := make(chan kmsg.Response, 1)
	go func() { out <- c.Do(t.Context(), "g", Client{ID: "c"}, req) }()
	synctest.Wait()
	return out
}

func answered(ch chan kmsg.Response) bool { return len(ch) > 0 }
