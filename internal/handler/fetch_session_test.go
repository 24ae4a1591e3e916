package handler

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/protocol"
	"muster/internal/store"
)

// sessionRig plays a client of fetch sessions.
type sessionRig struct {
	t   *testing.T
	s   *sessions
	now time.Time
}

func newSessionRig(t *testing.T, slots int) *sessionRig {
	r := &sessionRig{t: t, now: time.Unix(1000, 0)}
	r.s = newSessions(slots, func() time.Time { return r.now })
	return r
}

// manyPartitions counts from 0.
func manyPartitions(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

func fetchRequest(version int16, id, epoch int32, partitions ...int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.SessionID, req.SessionEpoch = version, id, epoch
	if len(partitions) > 0 {
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic = "t"
		for _, p := range partitions {
			part := kmsg.NewFetchRequestTopicPartition()
			part.Partition = p
			topic.Partitions = append(topic.Partitions, part)
		}
		req.Topics = append(req.Topics, topic)
	}
	return req
}

func (r *sessionRig) begin(req *kmsg.FetchRequest) *fetchTurn {
	r.t.Helper()
	turn, err := r.s.begin(req, nobody{}, auth.Anonymous)
	assert.Must(r.t, err)
	return turn
}

func (r *sessionRig) refused(req *kmsg.FetchRequest, want *kerr.Error) {
	r.t.Helper()
	if _, err := r.s.begin(req, nobody{}, auth.Anonymous); !errors.Is(err, want) {
		r.t.Errorf("got %v, want %v", err, want)
	}
}

// answer finishes a turn and returns the partitions that the answer names.
func answer(turn *fetchTurn, set func(*fetchPart)) []int32 {
	for i := range turn.parts {
		set(&turn.parts[i])
	}
	var told []int32
	turn.finish(turn.parts, func(p *fetchPart) { told = append(told, p.index) })
	return told
}

func nothing(*fetchPart) {}

func TestAnIncrementalFetchTellsOnlyNews(t *testing.T) {
	r := newSessionRig(t, 10)
	full := r.begin(fetchRequest(11, 0, epochInitial, 0, 1, 2))
	if told := answer(full, nothing); full.id == 0 || !slices.Equal(told, []int32{0, 1, 2}) {
		t.Fatalf("full fetch: session %d, told %v", full.id, told)
	}
	if told := answer(r.begin(fetchRequest(11, full.id, 1)), nothing); len(told) != 0 {
		t.Errorf("nothing happened, but told %v", told)
	}
	told := answer(r.begin(fetchRequest(11, full.id, 2)), func(p *fetchPart) {
		if p.index == 1 {
			p.result.HighWatermark = 5
		}
	})
	assert.EqualSlices(t, told, []int32{1}, "a moved high watermark: told")
}

func TestAPartitionWithDataGoesToTheEndOfTheLine(t *testing.T) {
	r := newSessionRig(t, 10)
	full := r.begin(fetchRequest(11, 0, epochInitial, 0, 1, 2))
	answer(full, func(p *fetchPart) {
		if p.index == 0 {
			p.result.Records = store.BytesRecords([]byte("x"))
		}
	})
	next := r.begin(fetchRequest(11, full.id, 1))
	var order []int32
	for _, p := range next.parts {
		order = append(order, p.index)
	}
	assert.EqualSlices(t, order, []int32{1, 2, 0}, "order")
}

func TestErrorsAreToldUntilTheyAreGone(t *testing.T) {
	r := newSessionRig(t, 10)
	full := r.begin(fetchRequest(11, 0, epochInitial, 0))
	fail := func(p *fetchPart) { p.result.Err = kerr.NotLeaderForPartition }
	answer(full, fail)
	for epoch := int32(1); epoch <= 2; epoch++ {
		if told := answer(r.begin(fetchRequest(11, full.id, epoch)), fail); len(told) != 1 {
			t.Errorf("epoch %d: told %v", epoch, told)
		}
	}
	if told := answer(r.begin(fetchRequest(11, full.id, 3)), nothing); len(told) != 1 {
		t.Errorf("the end of an error is news, told %v", told)
	}
}

func TestPartitionsAreAddedAndForgotten(t *testing.T) {
	r := newSessionRig(t, 10)
	full := r.begin(fetchRequest(11, 0, epochInitial, 0, 1))
	answer(full, nothing)
	req := forget(fetchRequest(11, full.id, 1, 2), 0)
	assert.EqualSlices(t, answer(r.begin(req), nothing), []int32{2}, "what is told")
	next := r.begin(fetchRequest(11, full.id, 2))
	assert.True(t, len(next.parts) == 2 && next.parts[0].index == 1 && next.parts[1].index == 2, "parts %+v", next.parts)
}

func TestWrongSessionsAreRefused(t *testing.T) {
	r := newSessionRig(t, 10)
	r.refused(fetchRequest(11, 77, 1), kerr.FetchSessionIDNotFound)
	full := r.begin(fetchRequest(11, 0, epochInitial, 0))
	r.refused(fetchRequest(11, full.id, 2), kerr.InvalidFetchSessionEpoch)
	r.refused(fetchRequest(13, full.id, 1), kerr.FetchSessionTopicIDError)
	closed := r.begin(fetchRequest(11, full.id, epochFinal, 0))
	assert.True(t, closed.id == 0 && closed.session == nil, "the last request of a session got %+v", closed)
	r.refused(fetchRequest(11, full.id, 1), kerr.FetchSessionIDNotFound)
}

func TestAFullCacheGivesNoSessionUntilOneIsIdle(t *testing.T) {
	r := newSessionRig(t, 1)
	first := r.begin(fetchRequest(11, 0, epochInitial, 0))
	assert.Equal(t, r.begin(fetchRequest(11, 0, epochInitial, 0)).id, 0, "a second session in one slot")
	r.now = r.now.Add(sessionIdle)
	third := r.begin(fetchRequest(11, 0, epochInitial, 0))
	assert.True(t, third.id != 0, "the idle session was not replaced")
	r.refused(fetchRequest(11, first.id, 1), kerr.FetchSessionIDNotFound)
}

func TestAPartitionNamedAgainIsReadOnce(t *testing.T) {
	r := newSessionRig(t, 10)
	for _, n := range []int{3, 2 * fewNamed} {
		req := fetchRequest(11, 0, epochFinal, manyPartitions(n)...)
		again := fetchRequest(11, 0, epochFinal, manyPartitions(n)...).Topics[0]
		again.Partitions[1].FetchOffset = 7
		req.Topics = append(req.Topics, again)
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, again.Partitions[2])
		parts := r.begin(req).parts
		if len(parts) != n || parts[1].index != 1 || parts[1].spec.Offset != 7 {
			t.Errorf("%d of %d partitions, the second is %+v", len(parts), n, parts[1])
		}
		other := fetchRequest(11, 0, epochFinal, manyPartitions(n)...).Topics[0]
		other.Topic = "u"
		req.Topics = append(req.Topics, other)
		assert.Equal(t, len(r.begin(req).parts), 2*n, "partitions of two topics with %d each", n)
	}
}

func TestSessionsShareABudgetOfBytes(t *testing.T) {
	r := newSessionRig(t, 10)
	r.s.budget = 250 * partBytes("t")
	first := r.begin(fetchRequest(11, 0, epochInitial, manyPartitions(100)...))
	second := r.begin(fetchRequest(11, 0, epochInitial, manyPartitions(100)...))
	assert.MustTrue(t, first.id != 0 && second.id != 0, "no session though there is room")
	third := r.begin(fetchRequest(11, 0, epochInitial, manyPartitions(100)...))
	assert.True(t, third.id == 0 && len(third.parts) == 100, "beyond the budget: session %d, %d partitions", third.id, len(third.parts))
	r.now = r.now.Add(sessionIdle)
	r.begin(fetchRequest(11, second.id, 1))
	if third = r.begin(fetchRequest(11, 0, epochInitial, manyPartitions(100)...)); third.id == 0 {
		t.Error("an idle session was not replaced")
	}
	r.refused(fetchRequest(11, first.id, 1), kerr.FetchSessionIDNotFound)
	r.begin(fetchRequest(11, second.id, 2))
}

func TestASessionThatGrowsBeyondTheBudgetEnds(t *testing.T) {
	r := newSessionRig(t, 10)
	r.s.budget = 250 * partBytes("t")
	idle := r.begin(fetchRequest(11, 0, epochInitial, manyPartitions(100)...))
	r.now = r.now.Add(sessionIdle)
	grows := r.begin(fetchRequest(11, 0, epochInitial, manyPartitions(100)...))
	r.begin(fetchRequest(11, grows.id, 1, manyPartitions(200)...))
	r.refused(fetchRequest(11, idle.id, 1), kerr.FetchSessionIDNotFound)
	r.refused(fetchRequest(11, grows.id, 2, manyPartitions(300)...), kerr.FetchSessionIDNotFound)
	assert.True(t, r.s.bytes == 0 && len(r.s.byID) == 0, "%d bytes of %d sessions are left", r.s.bytes, len(r.s.byID))
}

func forget(req *kmsg.FetchRequest, partitions ...int32) *kmsg.FetchRequest {
	forgotten := kmsg.NewFetchRequestForgottenTopic()
	forgotten.Topic, forgotten.Partitions = "t", partitions
	req.ForgottenTopics = append(req.ForgottenTopics, forgotten)
	return req
}

// live returns the memory that is in use.
func live() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // What was in pools.
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestWhatSessionsKeepIsCountedInTrueBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	r := newSessionRig(t, 10)
	before := live()
	id := r.begin(fetchRequest(11, 0, epochInitial, manyPartitions(100_000)...)).id
	if kept := live() - before; r.s.bytes < kept || r.s.bytes > 2*kept {
		t.Errorf("%d bytes counted, %d kept", r.s.bytes, kept)
	}
	r.begin(forget(fetchRequest(11, id, 1), manyPartitions(99_999)...))
	assert.Equal(t, r.s.bytes, partBytes("t"), "bytes counted after all but one were forgotten")
	if kept := live() - before; kept > 1<<20 {
		t.Errorf("%d bytes kept after all but one were forgotten", kept)
	}
	if parts := r.begin(fetchRequest(11, id, 2)).parts; len(parts) != 1 || parts[0].index != 99_999 {
		t.Errorf("%d partitions are left", len(parts))
	}
	runtime.KeepAlive(r)
}

func TestLongNamesInASessionCount(t *testing.T) {
	r := newSessionRig(t, 10)
	req := fetchRequest(11, 0, epochInitial, 0)
	req.Topics[0].Topic = strings.Repeat("long", 1000)
	r.begin(req)
	assert.True(t, r.s.bytes >= 4000, "%d bytes counted", r.s.bytes)
}

// smallMemory has room for so many bytes.
type smallMemory int

func (m *smallMemory) Hold(n int) bool {
	*m -= smallMemory(n)
	return *m >= 0
}

func TestAFetchOfMorePartitionsThanThereIsRoomForIsNotBegun(t *testing.T) {
	r := newSessionRig(t, 10)
	m := smallMemory(50 * fetchPartWork)
	if _, err := r.s.begin(fetchRequest(11, 0, epochFinal, manyPartitions(51)...), &m, auth.Anonymous); !errors.Is(err, protocol.ErrMemory) {
		t.Errorf("a full fetch: %v", err)
	}
	id := r.begin(fetchRequest(11, 0, epochInitial, manyPartitions(51)...)).id
	m = smallMemory(50 * fetchPartWork)
	if _, err := r.s.begin(fetchRequest(11, id, 1), &m, auth.Anonymous); !errors.Is(err, protocol.ErrMemory) {
		t.Errorf("a large session: %v", err)
	}
}

// Fetches of the same session and of others may come at once, and so may its end. What
// all sessions take is counted right in the end.
func TestFetchesBesideOneAnotherKeepCountOfSessions(t *testing.T) {
	s := newSessions(100, time.Now)
	var all sync.WaitGroup
	for range 4 {
		full, err := s.begin(fetchRequest(11, 0, epochInitial, 0, 1, 2), nobody{}, auth.Anonymous)
		if err != nil || full.id == 0 {
			t.Fatal(full, err)
		}
		for worker := range 3 {
			all.Go(func() {
				for i := range 200 {
					req := fetchRequest(11, full.id, int32(i+1), int32(i%50))
					if worker == 2 && i == 150 {
						req.SessionEpoch = epochFinal
					}
					if turn, err := s.begin(req, nobody{}, auth.Anonymous); err == nil {
						turn.finish(turn.parts, func(*fetchPart) {})
					}
				}
			})
		}
	}
	all.Wait()
	if len(s.byID) != 0 || s.used.Len() != 0 || s.bytes != 0 {
		t.Errorf("%d sessions, %d in line, %d bytes are left", len(s.byID), s.used.Len(), s.bytes)
	}
}

// A session that ended while a request was about to use it is gone for that too.
func TestSessionThatEndedMeanwhileIsNotCounted(t *testing.T) {
	r := newSessionRig(t, 10)
	full := r.begin(fetchRequest(11, 0, epochInitial, 0, 1, 2))
	r.begin(fetchRequest(11, full.id, epochFinal))
	assert.True(t, !r.s.touch(full.session) && r.s.bytes == 0, "%d bytes are left", r.s.bytes)
}
