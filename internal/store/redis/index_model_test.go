package redis

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

var (
	modelSeed  = flag.Uint64("seed", 1, "the first seed of TestIndexedLogIsAsItsModel")
	modelCount = flag.Uint64("n", 4, "how many seeds it runs")
)

// modelSteps is how many steps a seed has.
const modelSteps = 40

// TestIndexedLogIsAsItsModel does at random what may happen to a log, and compares it with a model of it after
// each second step. A seed does the same again, but for what is under way at the same time. (make model SEED=1 N=1000)
func TestIndexedLogIsAsItsModel(t *testing.T) {
	if testing.Short() {
		t.Skip("a seed takes a minute under race, and the contract has the same goroutines")
	}
	t.Parallel()
	server := redistest.Single(t, "appendonly no")
	end := *modelSeed + *modelCount
	for first := *modelSeed; first < end && !t.Failed(); first += modelAtOnce {
		t.Run(fmt.Sprint("from ", first), func(t *testing.T) {
			for seed := first; seed < min(first+modelAtOnce, end); seed++ {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					newIndexModel(t, server.URL(), seed).run()
				})
			}
		})
	}
}

// modelAtOnce is how many seeds are begun before it is looked whether one has failed.
const modelAtOnce = 100

func newIndexModel(t *testing.T, url string, seed uint64) *indexModel {
	b := newBedAt(t, url, inIndex)
	w := &indexModel{bed: b, seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), faults: rand.New(rand.NewPCG(seed, 8)), world: world{producers: store.ProducerMap{}}}
	for range 2 {
		s := New(&meddling{connect(t, url), w}, Options{Prefix: b.prefix, Timeout: patience})
		t.Cleanup(func() { _ = s.Close() })
		w.stores = append(w.stores, s)
	}
	return w
}

// run does the steps of a seed, and leaves nothing in Redis.
func (w *indexModel) run() {
	defer func() {
		if w.Failed() {
			w.Logf("step %d of seed %d did %q\nto do it again: make model SEED=%d N=1", w.step, w.seed, w.did, w.seed)
		}
	}()
	w.takeOver(false)
	for w.step = range modelSteps {
		if w.oneStep(); w.Failed() {
			return
		}
	}
	must(w.T, w.store.Delete(w.ctx, w.at))
}

// spot is what the model knows of an offset.
type spot struct {
	of         *sentBatch // nil if a Redis client added it
	key, value string     // none of a marker
	id         string     // of what a Redis client added
	timestamp  int64
	present    bool // a record that was not deleted, or a marker
	aborted    bool
	optional   bool // a marker that compaction may have removed
}

func (s *spot) marker() bool { return s.of != nil && s.of.marker != nil }

// world is a log as it should be.
type world struct {
	spots     []spot // by offset
	start     int64
	cleaned   int64
	producers store.ProducerMap
	aborted   []store.Aborted // that readers must be told of
}

func (w *world) end() int64 { return int64(len(w.spots)) }

func (w *world) clone() world {
	c := *w
	c.spots, c.aborted, c.producers = slices.Clone(w.spots), slices.Clone(w.aborted), store.NewProducerMap(w.producers.List())
	return c
}

// stable is the last stable offset.
func (w *world) stable() int64 {
	end := w.end()
	for _, p := range w.producers.List() {
		if p.TxnFirst != store.NoTxn {
			end = min(end, p.TxnFirst)
		}
	}
	return end
}

// present lists the offsets of the records that are there, from one on and below another.
func (w *world) present(from, next int64) (out []int64) {
	for o := from; o < next; o++ {
		if s := &w.spots[o]; s.present && !s.marker() {
			out = append(out, o)
		}
	}
	return out
}

// sentBatch is a batch that a leader was given.
type sentBatch struct {
	batch  record.Batch
	recs   []record.Record
	marker *record.Marker
	base   int64
	err    error
}

// indexModel is a log, its model, and those who use it.
type indexModel struct {
	*bed
	world
	seed   uint64
	rng    *rand.Rand
	stores []*Store
	leader store.Pipelined
	old    []store.Pipelined
	epoch  int32
	n      int
	step   int
	did    []string

	mu      sync.Mutex
	faults  *rand.Rand // of meddling
	meddle  int        // how often it may still do something in this step
	lost    bool       // a command or a reply, in this step
	pending []spot     // that Redis clients have added, and no one has adopted
}

func (w *indexModel) note(format string, args ...any) {
	w.did = append(w.did, fmt.Sprintf(format, args...))
}

// chance is true once in n times.
func (w *indexModel) chance(n int) bool { return w.rng.IntN(n) == 0 }

// foreign adds entries as a Redis client does, one after the other in one round trip. The lock is held.
func (w *indexModel) foreign(r *rand.Rand, ids ...string) {
	spots := make([]spot, len(ids))
	cmds := make([]rueidis.Completed, len(ids))
	for i, id := range ids {
		w.n++
		s := &spots[i]
		s.value, s.present, s.timestamp = fmt.Sprint("f", w.n), true, record.NoTimestamp
		words := []string{"value", s.value}
		if r.IntN(5) > 0 {
			s.key = fmt.Sprint("k", r.IntN(6))
			words = append(words, "key", s.key)
		}
		if r.IntN(2) == 0 {
			s.timestamp = int64(r.IntN(1000))
			words = append(words, "timestamp", fmt.Sprint(s.timestamp))
		}
		cmds[i] = w.client.B().Arbitrary("XADD").Keys(w.keys().stream).Args(id).Args(words...).Build()
	}
	for i, reply := range w.client.DoMulti(context.Background(), cmds...) {
		s := &spots[i]
		var err error
		if s.id, err = reply.ToString(); err != nil {
			continue // Its id was too low.
		}
		if at, _ := parseID(s.id); s.timestamp == record.NoTimestamp {
			s.timestamp = int64(at.ms)
		}
		w.pending = append(w.pending, *s)
	}
}

// foreignSome adds some entries, and deletes some that no one has adopted yet.
func (w *indexModel) foreignSome() {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 1 + w.rng.IntN(4)
	if w.chance(8) {
		n = 60 + w.rng.IntN(80)
	}
	if w.chance(60) {
		n = 600
	}
	w.note("%d foreign", n)
	next := func(entryID) entryID { return entryID{} }
	switch w.rng.IntN(4) {
	case 0: // right above the last
		next = func(last entryID) entryID { return entryID{last.ms, last.seq + 1 + uint64(w.rng.IntN(80))} }
	case 1: // a little ahead of the clock
		next = func(last entryID) entryID { return entryID{last.ms + uint64(w.rng.IntN(3)), last.seq + 1} }
	}
	ids := make([]string, n)
	last, _ := parseID(w.lastID())
	for i := range ids {
		ids[i] = "*"
		if id := next(last); id != (entryID{}) {
			ids[i], last = id.String(), id
		}
	}
	for part := range slices.Chunk(ids, 1+w.rng.IntN(n)) {
		w.foreign(w.rng, part...)
		if len(w.pending) == 0 {
			continue
		}
		words := []string{"XDEL", w.keys().stream}
		w.pending = slices.DeleteFunc(w.pending, func(s spot) bool {
			gone := w.chance(10)
			if gone {
				words = append(words, s.id)
			}
			return gone
		})
		if len(words) > 2 {
			w.do(words...)
		}
	}
}

func (w *indexModel) lastID() string {
	info, err := w.client.Do(w.ctx, w.client.B().XinfoStream().Key(w.keys().stream).Build()).AsMap()
	must(w.T, err)
	m := info["last-generated-id"]
	id, _ := m.ToString()
	return id
}

// send begins an append of a random batch.
func (w *indexModel) send(l store.Pipelined, all *sync.WaitGroup) *sentBatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &sentBatch{}
	t := record.PlainTemplate()
	var err error
	switch kind := w.rng.IntN(10); {
	case kind < 2:
		t.ProducerID, t.ProducerEpoch, t.BaseSequence = int64(1+w.rng.IntN(2)), 0, int32(w.rng.IntN(1000))
	case kind < 5:
		t.ProducerID, t.ProducerEpoch, t.BaseSequence, t.Transactional = int64(11+w.rng.IntN(3)), int16(w.rng.IntN(2)), int32(w.rng.IntN(1000)), true
	case kind < 7:
		s.marker = &record.Marker{Commit: w.chance(2), CoordinatorEpoch: int32(w.rng.IntN(3))}
		s.batch, err = record.BuildMarker(int64(11+w.rng.IntN(3)), int16(w.rng.IntN(2)), *s.marker, int64(w.rng.IntN(1000)))
	}
	if s.marker == nil {
		n := 1 + w.rng.IntN(5)
		if w.chance(6) {
			n = 100 + w.rng.IntN(200)
		}
		for i := range n {
			w.n++
			s.recs = append(s.recs, record.Record{
				OffsetDelta: int32(i), Timestamp: int64(w.rng.IntN(1000)), Value: fmt.Append(nil, "v", w.n), Key: fmt.Append(nil, "k", w.rng.IntN(6)),
			})
		}
		s.batch, err = record.Build(t, s.recs)
	}
	must(w.T, err)
	all.Add(1)
	l.Begin(context.Background(), slices.Clone(s.batch), func(at store.Appended, err error) {
		s.base, s.err = at.BaseOffset, err
		all.Done()
	})
	return s
}

// oneStep has Redis clients and leaders do something, and looks at the log.
func (w *indexModel) oneStep() {
	w.did = nil
	w.meddle, w.lost = 2*w.rng.IntN(3), false
	var back func()
	before := w.clone()
	if w.chance(8) {
		back = w.rewind()
	}
	for range w.rng.IntN(3) {
		w.foreignSome()
	}
	if w.chance(3) {
		_, err := w.leader.(store.Refresher).Refresh(w.ctx)
		w.note("refresh: %v", err)
	}
	var all sync.WaitGroup
	var sent, refused []*sentBatch
	deposed := len(w.old) > 0 && w.chance(4)
	for range w.rng.IntN(6) {
		sent = append(sent, w.send(w.leader, &all))
		if deposed {
			refused = append(refused, w.send(w.old[w.rng.IntN(len(w.old))], &all))
		}
	}
	switch {
	case back != nil:
		all.Wait()
		w.note("back to where it was")
		back()
		w.world, w.pending, sent = before, nil, nil
		w.lostLeader(&all, &sent)
		all.Wait()
		w.takeOver(false)
	case w.chance(6):
		w.takeOver(w.chance(2))
	default:
		all.Wait()
		w.wantTaken(sent)
	}
	all.Wait()
	for _, s := range refused {
		if s.err == nil {
			w.Errorf("a deposed leader has appended %d records at %d", len(s.recs), s.base)
		}
	}
	w.deposedChangeNothing()
	w.reconcile(sent)
	if !w.Failed() {
		w.maintainSome()
	}
	if !w.Failed() && (w.step%2 == 1 || w.step == modelSteps-1) {
		w.compare()
	}
}

// wantTaken wants all appends of a leader to have been taken, whatever Redis clients did meanwhile, unless a command or
// a reply was lost.
func (w *indexModel) wantTaken(sent []*sentBatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range sent {
		if s.err != nil && !w.lost {
			w.Errorf("an append of %d records, marker %v, was refused: %v", len(s.recs), s.marker, s.err)
		}
	}
}

// lostLeader has a leader try whose last appends may be forgotten.
func (w *indexModel) lostLeader(all *sync.WaitGroup, sent *[]*sentBatch) {
	if w.chance(3) {
		w.foreignSome()
		_, err := w.leader.(store.Refresher).Refresh(w.ctx)
		w.note("refresh of the lost: %v", err)
	}
	if w.chance(2) {
		w.note("save by the lost: %v", w.leader.SaveProducers(w.ctx, nil, 0))
	}
	if w.chance(2) {
		*sent = append(*sent, w.send(w.leader, all))
	}
	if w.chance(2) {
		_ = w.leader.Close()
	}
}

// takeOver opens the log, with or without an end to who led it.
func (w *indexModel) takeOver(closing bool) {
	w.note("take over, close %v", closing)
	if w.leader != nil {
		if closing {
			_ = w.leader.Close()
		} else if w.old = append(w.old, w.leader); len(w.old) > 3 {
			w.old = w.old[1:]
		}
	}
	w.mu.Lock()
	w.meddle = 0
	w.mu.Unlock()
	w.epoch++
	w.leader = w.openIn(w.stores[w.rng.IntN(len(w.stores))], w.epoch)
}

func (w *indexModel) deposedChangeNothing() {
	if len(w.old) == 0 || !w.chance(4) {
		return
	}
	l := w.old[w.rng.IntN(len(w.old))]
	for what, err := range map[string]error{
		"trim": l.Trim(w.ctx, w.end()), "save": l.SaveProducers(w.ctx, nil, 0), "compact": l.Compact(w.ctx, store.Compaction{Now: time.Now(), NextOffset: w.end()}),
		"retain": l.Retain(w.ctx, store.Retention{Now: time.Now(), MaxAge: -1, NextOffset: w.end()}),
	} {
		if err == nil {
			w.Errorf("a deposed leader may %s", what)
		}
	}
	_, _ = l.(store.Refresher).Refresh(w.ctx)
}

// maintainSome removes records, as a leader or as a Redis client.
func (w *indexModel) maintainSome() {
	l := w.leader
	switch w.rng.IntN(9) {
	case 0:
		to := w.start + w.rng.Int64N(w.end()-w.start+1)
		w.note("trim to %d", to)
		must(w.T, l.Trim(w.ctx, to))
		if w.start = to; w.first() != to {
			w.Errorf("trimmed to %d, it starts at %d", to, w.first())
		}
	case 1:
		w.note("retain")
		next := w.end()
		must(w.T, l.Retain(w.ctx, store.Retention{Now: time.Now(), MaxAge: -1, MaxBytes: w.rng.Int64N(l.Size() + 1), NextOffset: next}))
		if w.first() < w.start || w.first() > next {
			w.Errorf("it started at %d and starts at %d", w.start, w.first())
		}
		w.start = w.first()
	case 2, 3:
		w.compact()
	case 4:
		if there := w.present(w.start, w.end()); len(there) > 0 {
			left := w.rng.IntN(len(there) + 1)
			w.note("XTRIM to %d", left)
			w.do("XTRIM", w.keys().stream, "MAXLEN", strconv.Itoa(left))
			for _, o := range there[:len(there)-left] {
				w.spots[o].present = false
			}
		}
	case 5, 6:
		ids := w.ids()
		for i, o := range w.present(w.start, w.end()) {
			if w.chance(5) {
				w.do("XDEL", w.keys().stream, ids[i])
				w.spots[o].present = false
			}
		}
	case 7:
		must(w.T, l.SaveProducers(w.ctx, nil, 0))
	}
}

func (w *indexModel) first() int64 {
	start, _ := w.leader.Bounds()
	return start
}

func (w *indexModel) compact() {
	c := store.Compaction{Now: time.Now(), NextOffset: w.stable(), DeleteRetention: 24 * time.Hour}
	if w.chance(2) {
		c.DeleteRetention = 0
	}
	w.note("compact to %d, retention %v", c.NextOffset, c.DeleteRetention)
	must(w.T, w.leader.Compact(w.ctx, c))
	from := max(w.start, w.cleaned)
	if from >= c.NextOffset {
		return
	}
	latest := map[string]int64{}
	for _, o := range w.present(from, c.NextOffset) {
		if s := &w.spots[o]; !s.aborted {
			latest[s.key] = o
		}
	}
	for o := w.start; o < c.NextOffset; o++ {
		s := &w.spots[o]
		if s.marker() {
			s.optional = s.optional || c.DeleteRetention == 0
		} else if newest, ok := latest[s.key]; s.aborted || s.key == "" || ok && newest > o {
			s.present = false
		}
	}
	w.cleaned = c.NextOffset
}

// meddling is a client of a leader, in whose way Redis clients come, and whose replies may be lost.
type meddling struct {
	rueidis.Client
	w *indexModel
}

var errLost = errors.New("lost")

// DoMulti is what appends use.
func (m *meddling) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	if words := cmds[0].Commands(); words[0] != "MULTI" {
		return m.Client.DoMulti(ctx, cmds...)
	}
	switch m.w.beforeAppend(cmds) {
	case "lost":
		return m.Client.DoMulti(ended(ctx), cmds...)
	case "unheard":
		n := len(cmds)
		m.Client.DoMulti(ctx, cmds...)
		pings := make([]rueidis.Completed, n)
		for i := range pings {
			pings[i] = m.B().Ping().Build()
		}
		return m.Client.DoMulti(ended(ctx), pings...)
	}
	return m.Client.DoMulti(ctx, cmds...)
}

// Do is what adoptions use.
func (m *meddling) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if words := cmd.Commands(); len(words) < 2 || words[1] != adoptScript {
		return m.Client.Do(ctx, cmd)
	}
	switch m.w.fault(4) {
	case "lost":
		return m.Client.Do(ended(ctx), cmd)
	case "unheard":
		m.Client.Do(ctx, cmd)
		return m.Client.Do(ended(ctx), m.B().Ping().Build())
	}
	return m.Client.Do(ctx, cmd)
}

func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errLost)
	return ctx
}

// fault says whether a command, or its reply, is lost, once in n times.
func (w *indexModel) fault(n int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.meddle == 0 || w.faults.IntN(n) > 0 {
		return ""
	}
	w.meddle--
	w.lost = true
	return []string{"lost", "unheard"}[w.faults.IntN(2)]
}

// beforeAppend lets Redis clients add entries just before a leader does.
func (w *indexModel) beforeAppend(cmds []rueidis.Completed) string {
	var first, last entryID
	for _, cmd := range cmds {
		if words := cmd.Commands(); words[0] == "XADD" {
			if last, _ = parseID(words[3]); first == (entryID{}) {
				first = last
			}
		}
	}
	w.mu.Lock()
	if w.meddle > 0 && first != (entryID{}) && w.faults.IntN(2) == 0 {
		w.meddle--
		switch w.faults.IntN(6) {
		case 0:
			w.foreign(w.faults, first.String())
		case 1:
			w.foreign(w.faults, first.before().String())
		case 2:
			w.foreign(w.faults, last.after().String())
		case 3: // an id that is used, and of which nothing is left; at once, since another append may be under way
			_, _ = w.try("EVAL", "return redis.call('XDEL', KEYS[1], redis.call('XADD', KEYS[1], ARGV[1], 'value', 'deleted'))", "1", w.keys().stream, entryID{last.ms + 2, 5}.String())
		case 4: // more than an append adopts by the way, all below it
			ids := make([]string, 70)
			for i := range ids {
				ids[i] = entryID{first.ms - 1, 1<<40 + uint64(i)}.String()
			}
			w.foreign(w.faults, ids...)
		case 5:
			w.foreign(w.faults, slices.Repeat([]string{"*"}, 70)...)
		}
	}
	w.mu.Unlock()
	return w.fault(10)
}
