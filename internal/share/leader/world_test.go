package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/share/state"
	"muster/internal/share/window"
	"muster/internal/store"
	"muster/internal/store/mem"
)

var topicID = metadata.TopicID{15: 7}

// world is a leader with a real log, and a share coordinator that is the real core.
type world struct {
	t       *testing.T
	l       *Leader
	m       *partition.Manager
	image   *metadata.Image
	epoch   int32
	set     Settings
	coord   *coordinator
	members sync.Map               // groups that have sessions
	asked   atomic.Pointer[func()] // called once it is decided whether a group has one
	logs    *gatedStore
}

// coordinator is the core of the share coordinator. What it was told is not lost.
type coordinator struct {
	mu     sync.Mutex
	shard  *state.Shard
	image  *metadata.Image
	gate   chan struct{} // not nil: requests wait for it
	away   error         // not nil: it cannot be reached
	code   *kerr.Error   // not nil: it answers so
	writes []*kmsg.WriteShareGroupStateRequest
	asked  int
	only   string      // not empty: it is away for this group alone
	refuse *kerr.Error // not nil: it answers writes so
	bad    int         // how many requests are to panic
}

func (c *coordinator) panics(times int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bad = times
}

func (c *coordinator) ask(ctx context.Context, of Key, req kmsg.Request) (kmsg.Response, error) {
	c.mu.Lock()
	gate := c.gate
	c.asked++
	c.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bad > 0 {
		c.bad--
		panic("a request")
	}
	if away := c.only == "" || c.only == of.Group; away && c.away != nil {
		return nil, c.away
	} else if away && c.code != nil {
		return state.Definition(state.DefaultConfig).Fail(req, c.code), nil
	}
	if _, ok := req.(*kmsg.WriteShareGroupStateRequest); ok && c.refuse != nil {
		return state.Definition(state.DefaultConfig).Fail(req, c.refuse), nil
	}
	if w, ok := req.(*kmsg.WriteShareGroupStateRequest); ok {
		c.writes = append(c.writes, w)
	}
	return c.step(req), nil
}

func (c *coordinator) step(req kmsg.Request) kmsg.Response {
	out := c.shard.Step(machine.Input{Now: time.Now(), Image: c.image, MaxBatch: 1 << 20, Event: machine.Request{ID: 1, Msg: req}})
	return out.Replies[0].Msg
}

// initialize does what a group coordinator does for a group.
func (w *world) initialize(group string, stateEpoch int32, start int64) {
	w.t.Helper()
	req := kmsg.NewPtrInitializeShareGroupStateRequest()
	req.GroupID = group
	topic, p := kmsg.NewInitializeShareGroupStateRequestTopic(), kmsg.NewInitializeShareGroupStateRequestTopicPartition()
	topic.TopicID, p.StateEpoch, p.StartOffset = topicID, stateEpoch, start
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	w.coord.mu.Lock()
	defer w.coord.mu.Unlock()
	got := w.coord.step(req).(*kmsg.InitializeShareGroupStateResponse)
	assert.MustEqual(w.t, got.Topics[0].Partitions[0].ErrorCode, 0, "initialize")
}

// inWorld runs a test where time passes at once.
func inWorld(t *testing.T, do func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, logs: &gatedStore{Store: mem.New()}}
		w.set = Settings{Settings: window.Settings{Lock: 30 * time.Second, Limit: 5, Window: 2000, Renew: true}, Reset: Reset{Kind: Earliest}}
		w.coord = &coordinator{shard: state.NewShard(state.DefaultConfig())}
		w.m = partition.NewManager(partition.Options{Store: w.logs, Self: 1, Logger: slog.New(slog.DiscardHandler), Coordinator: trusting{}})
		w.lead()
		w.l = New(Options{
			Ask: w.coord.ask, Settings: func(string) Settings { return w.set }, Logger: slog.New(slog.DiscardHandler),
			InUse: func(group string) bool {
				_, ok := w.members.Load(group)
				if asked := w.asked.Swap(nil); asked != nil {
					(*asked)()
				}
				return ok
			},
		})
		w.members.Store("g", true)
		w.initialize("g", 1, -1)
		defer w.l.Close()
		do(w)
		synctest.Wait()
		w.check()
	})
}

// lead has the broker lead the partition under the next epoch.
func (w *world) lead() {
	w.t.Helper()
	before := metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1})
	edit := before.Edit()
	edit.PutTopic(metadata.Topic{Name: "t", ID: topicID, Partitions: []metadata.Partition{{Leader: 1, LeaderEpoch: w.epoch}}})
	w.epoch++
	if w.image == nil {
		w.image = before
		empty := *before
		empty.ClusterID = ""
		w.image = &empty
	}
	after := edit.Image()
	assert.Must(w.t, w.m.Apply(w.t.Context(), w.image, after, edit.Changed()))
	w.image = after
	w.coord.mu.Lock()
	w.coord.image = after
	w.coord.mu.Unlock()
}

// check holds what there is against what must hold.
func (w *world) check() {
	w.t.Helper()
	w.l.mu.Lock()
	var all []*part
	for _, parts := range w.l.groups {
		for _, p := range parts {
			all = append(all, p)
		}
	}
	w.l.mu.Unlock()
	counted := int64(0)
	for _, p := range all {
		p.mu.Lock()
		counted += p.size
		if p.window != nil {
			assert.NoError(w.t, p.window.CheckInvariants())
		}
		p.mu.Unlock()
	}
	assert.Equal(w.t, w.l.memory.Load(), counted, "memory as it is counted")
}

func (w *world) in() In { return w.of("g") }

func (w *world) of(group string) In {
	return In{Key: Key{group, topicID, 0}, Log: w.m.Get("t", 0)}
}

// append adds a batch of so many records.
func (w *world) append(n int) {
	w.t.Helper()
	w.appendBatch(record.PlainTemplate(), n)
}

func (w *world) appendBatch(tmpl record.Template, n int) {
	w.t.Helper()
	var recs []record.Record
	for i := range n {
		recs = append(recs, record.Record{OffsetDelta: int32(i), Timestamp: time.Now().UnixMilli(), Value: []byte("v")})
	}
	b, err := record.Build(tmpl, recs)
	assert.Must(w.t, err)
	done := make(chan partition.Appended, 1)
	how := partition.Produce{Acks: partition.AcksAll, Version: 11}
	if tmpl.Transactional {
		how.TransactionalID = "x"
	}
	w.m.Get("t", 0).Append(w.t.Context(), b, how, func(a partition.Appended) { done <- a })
	if a := <-done; a.Err != nil {
		w.t.Fatal(a.Err)
	}
}

var plainFetch = Fetch{Mode: window.ByRecord, MaxRecords: 500, BatchSize: 500, MaxBytes: 1 << 20, MinOne: true}

// fetch acquires for a member, after the share partition is loaded, and returns what it got:
// "0-2" for offsets, "*2" for a delivery count above one.
func (w *world) fetch(member string, set ...func(*Fetch)) string {
	w.t.Helper()
	return w.fetchOf("g", member, set...)
}

func (w *world) fetchOf(group, member string, set ...func(*Fetch)) string {
	w.t.Helper()
	f := plainFetch
	f.Member = member
	for _, s := range set {
		s(&f)
	}
	wait := NewWait()
	defer wait.End()
	f.Wait = wait
	got := w.l.Acquire(w.t.Context(), w.of(group), f)
	synctest.Wait()
	if got.Err == nil && len(got.Ranges) == 0 {
		got = w.l.Acquire(w.t.Context(), w.of(group), f)
	}
	return show(&got)
}

func most(n int64) func(*Fetch) { return func(f *Fetch) { f.MaxRecords = n } }

func show(got *Acquired) string {
	defer got.Records.Release()
	if got.Err != nil {
		return got.Err.Message
	}
	var out []string
	for _, r := range got.Ranges {
		s := fmt.Sprintf("%d-%d", r.First, r.Last)
		if r.Count > 1 {
			s += fmt.Sprintf("*%d", r.Count)
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// ack acknowledges a range, and returns the error.
func (w *world) ack(member string, kind int8, first, last int64) string {
	w.t.Helper()
	return said(w.l.Acknowledge(w.in(), member, []window.Acknowledgement{{First: first, Last: last, Types: []int8{kind}}}, kind == window.Renew).Wait())
}

func said(err *kerr.Error) string {
	if err == nil {
		return "ok"
	}
	return err.Message
}

func (w *world) leave(member string) {
	w.t.Helper()
	for _, o := range w.l.Leave("g", member) {
		assert.Equal(w.t, said(o.Wait()), "ok", "leave")
	}
}

// writes are those that were stored.
func (w *world) writes() []*kmsg.WriteShareGroupStateRequest {
	w.coord.mu.Lock()
	defer w.coord.mu.Unlock()
	return slices.Clone(w.coord.writes)
}

// store stores something of g, as a leader did.
func (w *world) store(batches ...window.StateBatch) {
	w.t.Helper()
	w.storeUnder(1, batches...)
}

func (w *world) storeUnder(stateEpoch int32, batches ...window.StateBatch) {
	w.t.Helper()
	req := (&part{key: w.in().Key}).writeRequest(&window.Write{Epochs: window.Epochs{State: stateEpoch}, Batches: batches})
	w.coord.mu.Lock()
	defer w.coord.mu.Unlock()
	got := w.coord.step(req).(*kmsg.WriteShareGroupStateResponse)
	assert.MustEqual(w.t, got.Topics[0].Partitions[0].ErrorCode, 0, "write")
}

// held has requests to the share coordinator wait until it is called.
func (w *world) held() (release func()) {
	gate := make(chan struct{})
	w.coord.mu.Lock()
	defer w.coord.mu.Unlock()
	w.coord.gate = gate
	return func() {
		w.coord.mu.Lock()
		defer w.coord.mu.Unlock()
		w.coord.gate = nil
		close(gate)
	}
}

func (w *world) broken(away error, code *kerr.Error) {
	w.coord.mu.Lock()
	defer w.coord.mu.Unlock()
	w.coord.away, w.coord.code = away, code
}

var errAway = errors.New("the share coordinator is away")

// here says whether there is a share partition of the group.
func (w *world) here(group string) bool {
	synctest.Wait()
	return w.l.find(w.of(group).Key, w.of(group).Log) != nil
}

// gatedStore has reads of logs wait.
type gatedStore struct {
	store.Store
	mu   sync.Mutex
	gate chan struct{}
	most int64 // that was asked for at once
}

func (s *gatedStore) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	l, err := s.Store.Open(ctx, tp, epoch, cfg)
	return &gatedLog{l, s}, err
}

type gatedLog struct {
	store.Log
	of *gatedStore
}

func (l *gatedLog) Read(ctx context.Context, req store.ReadRequest) (store.Records, error) {
	l.of.mu.Lock()
	gate := l.of.gate
	l.of.most = max(l.of.most, int64(req.MaxBytes))
	l.of.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return l.Log.Read(ctx, req)
}

// pass lets time pass.
func (w *world) pass(d time.Duration) { <-time.After(d) }

// trusting has every partition be in every transaction.
type trusting struct{}

func (trusting) Ask(_ partition.TxnQuestion, done func(partition.TxnAnswer)) {
	go done(partition.TxnAnswer{Start: partition.NoStart})
}
