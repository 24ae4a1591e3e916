package group

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/harness"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// TestAnySequenceKeepsTheInvariants gives a shard random events. After each one
// the invariants hold; the log, its compaction, and its compaction in any order
// say what the shard knows; no one is answered twice, and whoever waits is parked;
// the timers are those that the shard waits for. In the end, left alone, and
// with all transactions ended, the shard answers everybody and forgets everything.
func TestAnySequenceKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"form": w.form, "form again": w.form, "join": w.join, "join again": w.rejoin, "restart": w.restart,
			"sync": w.sync, "heartbeat": w.heartbeat, "leave": w.leave, "commit": w.commit, "reset": w.reset, "fetch": w.fetch,
			"delete offsets": w.deleteOffsets, "delete groups": w.deleteGroups, "describe": w.describe,
			"topics changed": w.topicsChanged, "configure": w.configure, "wait": w.wait, "stale timer": w.staleTimer,
			"txn commit": w.txnCommit, "txn commit again": w.txnCommit, "answer": w.answer, "answer again": w.answer, "marker": w.marker,
			"crash": w.crash, "append fails": w.appendFails,
		})
		w.calm(t)
	})
}

// world is what is around a shard: clients, clock, log and timers.
type world struct {
	cfg    kind.Config
	shard  *Shard
	twin   *Shard // gets the same inputs, and must do the same
	now    time.Time
	fresh  int
	next   machine.RequestID
	asked  map[machine.RequestID]kmsg.Request
	log    []machine.Batch
	timers map[machine.TimerKey]machine.Timer
	stale  []machine.Timer
	ids    []string // member ids that someone was told
	last   int      // how many batches the last step made
	before map[string]int32
	topics map[string]byte // with their ids
	ids16  byte            // the last of them
	sends  []machine.Send  // questions that are not answered
	start  int64           // of the last transaction
	image  *metadata.Image
}

func newWorld(t *rapid.T) *world {
	w := &world{cfg: kind.DefaultConfig(), now: time.Unix(1_700_000_000, 0), ids: []string{"", "ghost"}, topics: map[string]byte{"t": 1}, ids16: 1}
	w.image = withTransactions(imageOf(w.topics))
	w.cfg.OffsetsRetention = time.Hour
	w.load(t)
	return w
}

// load makes the shard anew from its log.
func (w *world) load(t *rapid.T) {
	w.shard, w.twin = replayed(w.log, w.cfg), replayed(w.log, w.cfg)
	w.sends = nil
	w.asked, w.timers, w.stale, w.before = map[machine.RequestID]kmsg.Request{}, map[machine.TimerKey]machine.Timer{}, nil, map[string]int32{}
	w.step(t, machine.Loaded{})
}

func (w *world) step(t *rapid.T, e machine.Event) machine.Effects {
	w.fresh++
	in := machine.Input{Now: w.now, Random: freshBytes(w.fresh), Image: w.image, Event: e}
	committed := w.shard.committedOffsets()
	fx, same := w.shard.Step(in), w.twin.Step(in)
	checkCommitted(t, committed, w.shard, e, committedIn(fx.Notes))
	if !reflect.DeepEqual(fx, same) {
		t.Fatalf("the same input has two effects: %+v and %+v", fx, same)
	}
	w.log = append(w.log, cloneBatches(fx.Batches)...)
	w.last = len(fx.Batches)
	w.sends = append(w.sends, fx.Sends...)
	for _, r := range fx.Replies {
		w.answered(t, r)
	}
	w.stale = append(w.stale, harness.Arm(w.timers, fx.Timers)...)
	w.check(t)
	return fx
}

func (w *world) answered(t *rapid.T, r machine.Reply) {
	_, resp := harness.Answered(t, w.asked, r)
	if j, ok := resp.(*kmsg.JoinGroupResponse); ok && !slices.Contains(w.ids, j.MemberID) {
		w.ids = append(w.ids, j.MemberID)
	}
}

func (w *world) request(t *rapid.T, msg kmsg.Request) {
	w.next++
	again := harness.OnTheWire(t, msg)
	w.asked[w.next] = again
	w.step(t, machine.Request{ID: w.next, ClientID: "c", Host: "h", Msg: again})
}

func (w *world) check(t *rapid.T) {
	if err := w.shard.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	w.checkLog(t)
	parked, expected := len(w.shard.txns.parked.byID), 1 // The sweep.
	expected += w.armed(t, machine.TimerKey{Kind: kind.TimerAsk}, w.shard.txns.parked.seq)
	for _, id := range w.shard.GroupIDs() {
		g := w.shard.classic(id)
		if g.Generation < w.before[id] {
			t.Fatalf("generation of %q went back from %d to %d", id, w.before[id], g.Generation)
		}
		for m := g.Members.First; m != nil; m = m.Next {
			for _, waits := range []machine.RequestID{m.Join, m.Sync} {
				if waits != 0 {
					parked++
				}
				if _, ok := w.asked[waits]; waits != 0 && !ok {
					t.Fatalf("request %d is parked, but was answered", waits)
				}
			}
			expected += w.armed(t, classic.SessionKey(g, m.ID), m.TimerSeq)
		}
		if g.Live != nil {
			parked++
			expected += w.armed(t, kind.ResetKey(id), g.Live.Seq)
		}
		for p := range g.PendingIDs() {
			expected += w.armed(t, classic.SessionKey(g, p), g.Pending[p].Seq)
		}
		expected += w.armed(t, classic.JoinKey(g), g.JoinSeq) + w.armed(t, classic.SyncKey(g), g.SyncSeq)
	}
	if parked != len(w.asked) {
		t.Fatalf("%d requests are not answered, %d are parked", len(w.asked), parked)
	}
	if len(w.timers) != expected {
		t.Fatalf("%d timers are armed, %d are waited for: %v", len(w.timers), expected, w.timers)
	}
	clear(w.before)
	for id, g := range w.shard.Groups {
		w.before[id] = g.(*classic.Group).Generation
	}
}

// armed returns 1 if the shard waits for the timer, which must be armed then.
func (w *world) armed(t *rapid.T, key machine.TimerKey, seq uint64) int {
	if seq == 0 {
		return 0
	}
	if w.timers[key].Seq != seq {
		t.Fatalf("timer %v is waited for under %d, and armed under %d", key, seq, w.timers[key].Seq)
	}
	return 1
}

// checkLog loads the log as it is, compacted, and compacted in another order.
func (w *world) checkLog(t *rapid.T) {
	live := w.shard.Digest()
	kept, all := compacted(w.log, len(w.log), false), compacted(w.log, len(w.log), true)
	r := rand.New(rand.NewPCG(uint64(w.fresh), 0))
	prefix := compacted(w.log, r.IntN(len(w.log)+1), false)
	shuffled := singly(all)
	// Only what no transaction has to do with may come in any order.
	n := slices.IndexFunc(shuffled, func(b machine.Batch) bool { return b.Producer != nil })
	if n < 0 {
		n = len(shuffled)
	}
	r.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for what, log := range map[string][]machine.Batch{"log": w.log, "compacted": kept, "with tombstones": all, "partly": prefix, "shuffled": shuffled} {
		if replayed(log, w.cfg).Digest() != live {
			t.Fatalf("the %s says something else than the shard knows", what)
		}
	}
}

func (w *world) pass(t *rapid.T, d time.Duration) { w.passBy(t, d, w.step) }

// passBy lets time pass, and gives what is due to the shard by step.
func (w *world) passBy(t *rapid.T, d time.Duration, step func(*rapid.T, machine.Event) machine.Effects) {
	until := w.now.Add(d)
	at := w.now
	for n := 0; ; n++ {
		if w.now.After(at) {
			at, n = w.now, 0
		}
		if n > 1000 {
			t.Fatalf("timers fire again and again, and time stands still: %v", w.timers)
		}
		tm, ok := harness.Due(w.timers, until)
		if !ok {
			break
		}
		delete(w.timers, tm.Key)
		// Time does not stand still while a timer that fires is not replaced, nor
		// go back if it was armed for the past.
		if tm.At.After(w.now) {
			w.now = tm.At
		}
		w.stale = append(w.stale, tm)
		step(t, machine.TimerFired{Key: tm.Key, Seq: tm.Seq})
	}
	w.now = until
}

// calm leaves the shard alone until all sessions and offsets have expired.
func (w *world) calm(t *rapid.T) {
	w.pass(t, 12*time.Hour)
	w.endAll(t)
	w.pass(t, 12*time.Hour)
	if len(w.asked) > 0 {
		t.Fatalf("nobody is there any more, but %d requests were never answered", len(w.asked))
	}
	if ids := w.shard.GroupIDs(); len(ids) > 0 || len(w.timers) != 1 {
		t.Fatalf("left alone, groups %q stay with timers %v", ids, slices.Collect(maps.Keys(w.timers)))
	}
}
