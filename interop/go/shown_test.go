package interop

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestWhatClientsWereToldIsNotTakenBack has brokers killed and frozen while transactions are
// committed, and asks each of them all the time for the high watermark, the last stable offset and
// a committed offset. Whoever asks after someone was told one must not be told a lower
// one, by any broker: who rebuilds its state from a log up to such an end
// would miss some of it. A broker that was frozen has such questions waiting when it wakes up.
func TestWhatClientsWereToldIsNotTakenBack(t *testing.T) {
	onlyOn(t, "disk", "redis")
	site := copySites[storeKind](t)
	createTopic(t, site.addresses()[0], "out", 1)
	s := &shownSite{t: t, addrs: site.addresses(), told: map[string]int64{}}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.commit(ctx) })
	for _, addr := range s.addrs {
		running.Go(func() { s.watch(ctx, addr) })
	}
	s.goesOn()
	rng := rand.New(rand.NewPCG(1, 2))
	if f, ok := site.(fleetSite); ok {
		victim := f.leader("out", 0)
		f.freeze(victim, func() {
			f.othersLead(victim)
			s.goesOn()
		})
		f.hasAll()
	} else {
		site.lose(t, rng)
	}
	s.goesOn()
	stop()
	running.Wait()
	t.Logf("%d transactions, %d answers", s.committed.Load(), s.answers.Load())
}

type shownSite struct {
	t     *testing.T
	addrs []string

	committed atomic.Int64 // transactions
	answers   atomic.Int64
	mu        sync.Mutex
	told      map[string]int64 // the highest that anybody was told of each
}

// goesOn waits until some more transactions are committed.
func (s *shownSite) goesOn() {
	s.t.Helper()
	from := s.committed.Load()
	waitFor(s.t, "transactions", func() error {
		if n := s.committed.Load() - from; n < 5 {
			return fmt.Errorf("%d were committed", n)
		}
		return nil
	})
}

// commit commits one transaction after the other, each with a record and an offset.
func (s *shownSite) commit(ctx context.Context) {
	opts := append(slices.Clone(transactionVersions["TV1"]), kgo.SeedBrokers(s.addrs...), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }), kgo.RequestTimeoutOverhead(2*time.Second), kgo.ProduceRequestTimeout(2*time.Second))
	for n := int64(1); ctx.Err() == nil; {
		cl := transactional(s.t, strings.Join(s.addrs, ","), "writer", opts...)
		var err error
		for ; err == nil && ctx.Err() == nil; n++ {
			if err = commitOffset(ctx, cl, n); err == nil {
				s.committed.Add(1)
			}
		}
		cl.Close()
	}
}

func commitOffset(ctx context.Context, cl *kgo.Client, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, wireTimeout)
	defer cancel()
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "out", Value: []byte("v")}).FirstErr(); err != nil {
		return err
	}
	pid, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = "writer", pid, epoch, "g"
	added, err := add.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(added.ErrorCode); err != nil {
		return err
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group, req.Generation = "writer", pid, epoch, "g", -1
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "out", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Offset: n, LeaderEpoch: -1}}}}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode); err != nil {
		return err
	}
	return cl.EndTransaction(ctx, kgo.TryCommit)
}

// shown is what an answer says of something.
type shown struct {
	what  string
	value int64
	err   int16
}

// question is a request whose answer says how far something is.
type question struct {
	req    kmsg.Request
	answer func(kmsg.Response) []shown
}

// questions asks for all that must not go back. A reader of committed records goes on where
// it was told that they end.
func questions(end int64) []question {
	list := func(isolation int8, what string) question {
		req := kmsg.NewPtrListOffsetsRequest()
		req.Version, req.ReplicaID, req.IsolationLevel = 5, -1, isolation
		req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "out", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{CurrentLeaderEpoch: -1, Timestamp: -1}}}}
		return question{req, func(r kmsg.Response) []shown {
			p := r.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
			return []shown{{what, p.Offset, p.ErrorCode}}
		}}
	}
	group := func(stable bool) question {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version, req.Group, req.RequireStable = 7, "g", stable
		req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "out", Partitions: []int32{0}}}
		return question{req, func(r kmsg.Response) []shown {
			resp := r.(*kmsg.OffsetFetchResponse)
			if resp.ErrorCode != 0 {
				return []shown{{"committed offset", 0, resp.ErrorCode}}
			}
			p := resp.Topics[0].Partitions[0]
			return []shown{{"committed offset", p.Offset, p.ErrorCode}}
		}}
	}
	fetch := kmsg.NewPtrFetchRequest()
	fetch.Version, fetch.ReplicaID, fetch.MaxBytes, fetch.IsolationLevel, fetch.SessionEpoch = 11, -1, 1<<20, 1, -1
	fetch.Topics = []kmsg.FetchRequestTopic{{Topic: "out", Partitions: []kmsg.FetchRequestTopicPartition{{
		FetchOffset: max(end, 0), CurrentLeaderEpoch: -1, LogStartOffset: -1, PartitionMaxBytes: 1 << 16,
	}}}}
	read := question{fetch, func(r kmsg.Response) []shown {
		p := r.(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if p.ErrorCode == kerr.OffsetOutOfRange.Code {
			return []shown{{"last stable offset", -1, 0}}
		}
		return []shown{{"high watermark", p.HighWatermark, p.ErrorCode}, {"last stable offset", p.LastStableOffset, p.ErrorCode}}
	}}
	return []question{list(0, "high watermark"), list(1, "last stable offset"), group(true), group(false), read}
}

// watch asks a broker, whether it answers or not.
func (s *shownSite) watch(ctx context.Context, addr string) {
	for ctx.Err() == nil {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			s.converse(ctx, addr, c)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// asked is a question that waits for its answer, and what was told before it was asked.
type asked struct {
	question
	before map[string]int64
}

// converse asks on and on, until the connection or the test ends. It does not wait for answers.
func (s *shownSite) converse(ctx context.Context, addr string, c net.Conn) {
	talking, hangUp := context.WithCancel(ctx)
	defer context.AfterFunc(talking, func() { c.Close() })()
	waiting := make(chan asked, 1000)
	var listening sync.WaitGroup
	listening.Go(func() {
		defer hangUp()
		for a := range waiting {
			if err := s.hear(addr, c, a); err != nil {
				return
			}
		}
	})
	defer listening.Wait()
	defer hangUp()
	defer close(waiting)
	format := kmsg.NewRequestFormatter()
	for ; ; <-time.After(10 * time.Millisecond) {
		before := s.snapshot()
		for _, q := range questions(before["last stable offset"]) {
			if _, err := c.Write(format.AppendRequest(nil, q.req, 7)); err != nil {
				return
			}
			select {
			case waiting <- asked{q, before}:
			case <-talking.Done():
				return
			}
		}
	}
}

func (s *shownSite) snapshot() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int64{"high watermark": -1, "last stable offset": -1, "committed offset": -1}
	for k, v := range s.told {
		out[k] = v
	}
	return out
}

// hear takes in one answer.
func (s *shownSite) hear(addr string, c net.Conn, a asked) error {
	if err := c.SetReadDeadline(time.Now().Add(wireTimeout)); err != nil {
		return err
	}
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	frame := make([]byte, int(head[0])<<24|int(head[1])<<16|int(head[2])<<8|int(head[3]))
	if _, err := io.ReadFull(c, frame); err != nil {
		return err
	}
	resp := a.req.ResponseKind()
	body, err := openResponse(frame, 7, resp)
	if err == nil {
		err = resp.ReadFrom(body)
	}
	if err != nil {
		s.t.Errorf("the answer of %s: %v", addr, err)
		return err
	}
	s.answers.Add(1)
	for _, got := range a.answer(resp) {
		if got.err != 0 {
			continue
		}
		if got.value < a.before[got.what] {
			s.t.Errorf("%s says by %s that the %s is %d; before it was asked somebody was told %d",
				addr, kmsg.NameForKey(a.req.Key()), got.what, got.value, a.before[got.what])
		}
		s.mu.Lock()
		if old, ok := s.told[got.what]; !ok || got.value > old {
			s.told[got.what] = got.value
		}
		s.mu.Unlock()
	}
	return nil
}
