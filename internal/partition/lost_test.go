package partition

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/mem"
	"muster/internal/store/vfs"
)

// raising lets a rig raise leader epochs, as the cluster's metadata does.
func (r *rig) raising() {
	r.raises.raise = func(ctx context.Context, name string, index, from, above int32) error {
		before := r.image
		p := before.Topic(name).Partitions[index]
		if p != (metadata.Partition{Leader: 1, LeaderEpoch: from}) {
			return nil
		}
		edit := before.Edit()
		t := *before.Topic(name)
		t.Partitions = []metadata.Partition{{Leader: 1, LeaderEpoch: max(from, above) + 1}}
		edit.PutTopic(t)
		r.image = edit.Image()
		return r.Apply(ctx, before, r.image, edit.Changed())
	}
	go r.raises.run(r.t.Context())
}

// appendUntil appends as a producer does, that is, again after errors.
func (r *rig) appendUntil(p producerAt, value string) (at int64) {
	r.t.Helper()
	if err := redistest.Poll(time.Minute, func() error {
		if r.part() == nil {
			return errors.New("there is no leader")
		}
		a := r.append(r.batch(p, 1, value), AcksAll)
		r.ahead.Add(int64(time.Second))
		at = a.BaseOffset
		if a.Err != nil {
			return a.Err
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return at
}

// TestALogThatLostRecordsIsLedUnderAHigherEpoch shows five records to readers,
// and takes the last two from the store.
func TestALogThatLostRecordsIsLedUnderAHigherEpoch(t *testing.T) {
	const kept = 3
	for name, begin := range map[string]func(t *testing.T) (s store.Store, soon, lose func()){
		"failed sync on disk": func(t *testing.T) (store.Store, func(), func()) {
			fs := vfs.NewMem()
			s := diskStore(t, fs)
			return s, func() {}, func() {
				fs.SetHook(func(op vfs.Op) error {
					if op.Kind == vfs.OpDatasync {
						fs.SetHook(nil)
						return errors.New("medium error")
					}
					return nil
				})
			}
		},
		"older state of Redis": func(t *testing.T) (store.Store, func(), func()) {
			server := redistest.Single(t)
			var older redistest.Snapshot
			s := redisStore(t, server, "lost", 10*time.Second)
			return s, func() { older = server.Nodes[0].Snapshot(t) }, func() { server.Nodes[0].Restore(t, older) }
		},
		"empty Redis": func(t *testing.T) (store.Store, func(), func()) {
			server := redistest.Single(t)
			s := redisStore(t, server, "lost", 10*time.Second)
			return s, func() {}, func() {
				if _, err := server.Nodes[0].Do("FLUSHALL"); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, soon, lose := begin(t)
			r := newRig(t, s, map[string]string{"muster.redis.layout": "log"})
			r.raising()
			producer := func(seq int32) producerAt { return producerAt{id: 7, seq: seq} }
			for i := range int32(kept) {
				r.wantAppend(r.batch(producer(i), 1, fmt.Sprint("kept ", i)), int64(i))
			}
			soon()
			for i := range int32(2) {
				if a := r.append(r.batch(producer(kept+i), 1, "lost"), 1); a.Err != nil {
					t.Fatal(a.Err)
				}
			}
			lose()
			if name == "empty Redis" {
				if at := r.appendUntil(plain, "first"); at != 0 {
					t.Errorf("the first record of an empty log is at %d", at)
				}
				if p := r.part(); p.LeaderEpoch() != 1 || !errors.Is(p.CheckEpoch(0), kerr.FencedLeaderEpoch) {
					t.Errorf("the leader epoch is %d", p.LeaderEpoch())
				}
				return
			}
			if at := r.appendUntil(plain, "next"); at != kept {
				t.Errorf("stored at %d", at)
			}
			r.wantAppend(r.batch(producer(kept), 1, "again"), kept+1) // Its producer was not told.
			p := r.part()
			if p.LeaderEpoch() != 1 || !errors.Is(p.CheckEpoch(0), kerr.FencedLeaderEpoch) {
				t.Errorf("the leader epoch is %d, and epoch 0 is answered %v", p.LeaderEpoch(), p.CheckEpoch(0))
			}
			if got, want := p.EpochEnd(0), (EpochEnd{Epoch: 0, EndOffset: kept}); got != want {
				t.Errorf("epoch 0 ended at %+v, want %+v", got, want)
			}
			f := p.Read(t.Context(), Fetch{Offset: kept + 2, LeaderEpoch: 1, LastFetchedEpoch: 0, MaxBytes: 1 << 20})
			if f.Diverging == nil || *f.Diverging != (EpochEnd{Epoch: 0, EndOffset: kept}) {
				t.Errorf("a reader that was ahead is told %+v", f)
			}
			if got := fmt.Sprint(r.values()); got != "[kept 0 kept 1 kept 2 next again]" {
				t.Errorf("the log holds %s", got)
			}
		})
	}
}

// TestNobodyIsServedByALogThatLostRecords looks at a partition between the loss
// and the new epoch.
func TestNobodyIsServedByALogThatLostRecords(t *testing.T) {
	fs := vfs.NewMem()
	r := newRig(t, diskStore(t, fs), nil)
	p := r.part()
	r.wantAppend(r.batch(plain, 1, "kept"), 0)
	if a := r.append(r.batch(plain, 1, "lost"), 1); a.Err != nil {
		t.Fatal(a.Err)
	}
	fs.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			fs.SetHook(nil)
			return errors.New("medium error")
		}
		return nil
	})
	synced := make(chan struct{})
	p.log.Load().Flush(func(err error) {
		_ = p.syncFailed(p.log.Load(), err)
		close(synced)
	})
	<-synced
	w := NewWaiter()
	p.Watch(w)
	done := make(chan Appended, 1)
	var opened *openLog
	for range 2 {
		p.Append(t.Context(), r.batch(plain, 1, "later"), Produce{Acks: AcksAll}, func(a Appended) { done <- a })
		if a := <-done; !errors.Is(a.Err, kerr.NotLeaderForPartition) {
			t.Errorf("an append is answered %+v", a)
		}
		if l := p.log.Load(); opened == nil {
			opened = l
		} else if l != opened {
			t.Error("the log is opened again and again")
		}
	}
	select {
	case <-w.C:
	default:
		t.Error("who waits for records is not woken")
	}
	if f := p.Read(t.Context(), Fetch{Offset: 0, LeaderEpoch: 0, LastFetchedEpoch: NoEpoch, MaxBytes: 100}); !errors.Is(f.Err, kerr.NotLeaderForPartition) {
		t.Errorf("a fetch is answered %+v", f)
	}
	if err := p.Reopen(t.Context()); !errors.Is(err, kerr.NotLeaderForPartition) {
		t.Errorf("reopen says %v", err)
	}
	if r.part() != nil {
		t.Error("the manager still has it")
	}
	if want := (map[store.TopicPartition]raise{{Topic: testTopic}: {0, 0}}); fmt.Sprint(r.raises.todo) != fmt.Sprint(want) {
		t.Errorf("wants to be raised: %v", r.raises.todo)
	}
}

// TestALogThatKnowsAHigherEpochIsOpenedAboveIt has metadata that forgot epochs.
func TestALogThatKnowsAHigherEpochIsOpenedAboveIt(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) store.Store{
		"mem":   func(*testing.T) store.Store { return mem.New() },
		"disk":  func(t *testing.T) store.Store { return diskStore(t, vfs.NewMem()) },
		"redis": func(t *testing.T) store.Store { return redisStore(t, redistest.Single(t), "higher", time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			if _, err := s.Open(t.Context(), store.TopicPartition{Topic: testTopic}, 41, store.LogConfig{}); err != nil {
				t.Fatal(err)
			}
			r := newRig(t, s, nil)
			if r.part() != nil {
				t.Fatal("opened under a lower epoch")
			}
			r.raising()
			redistest.Eventually(t, "the partition to be led", func() bool { return r.part() != nil })
			if got := r.part().LeaderEpoch(); got != 42 {
				t.Errorf("the leader epoch is %d", got)
			}
		})
	}
}

// TestARaiseThatFailsIsTriedAgain has metadata that cannot be written at first.
func TestARaiseThatFailsIsTriedAgain(t *testing.T) {
	r := newRig(t, mem.New(), nil)
	tried := make(chan raise, 3)
	r.raises.raise = func(_ context.Context, _ string, _, from, above int32) error {
		tried <- raise{from, above}
		if len(tried) < 2 {
			return errors.New("away")
		}
		return nil
	}
	go r.raises.run(t.Context())
	r.raises.want(store.TopicPartition{Topic: testTopic}, 3, 5)
	redistest.Eventually(t, "a second attempt", func() bool { return len(tried) == 2 })
	if a, b := <-tried, <-tried; a != b || a != (raise{3, 5}) {
		t.Errorf("%v and %v", a, b)
	}
}

// TestVerifyFindsALossWithoutAnAppend has readers only.
func TestVerifyFindsALossWithoutAnAppend(t *testing.T) {
	server := redistest.Single(t)
	r := newRig(t, redisStore(t, server, "verify", 10*time.Second), map[string]string{"muster.redis.layout": "log"})
	r.raising()
	r.wantAppend(r.batch(plain, 1, "kept"), 0)
	older := server.Nodes[0].Snapshot(t)
	r.wantAppend(r.batch(plain, 1, "lost"), 1)
	r.Verify(t.Context())
	if p := r.part(); p == nil || p.LeaderEpoch() != 0 || p.HighWatermark() != 2 {
		t.Errorf("nothing is lost, and the partition is %+v", p)
	}
	server.Nodes[0].Restore(t, older)
	redistest.Eventually(t, "a higher epoch", func() bool {
		r.Verify(t.Context())
		return r.part() != nil && r.part().LeaderEpoch() == 1
	})
	if hw := r.part().HighWatermark(); hw != 1 {
		t.Errorf("high watermark %d", hw)
	}
}

// TestAHandOverIsNotAFailure closes a partition that another broker has opened
// meanwhile, or that this one has opened anew.
func TestAHandOverIsNotAFailure(t *testing.T) {
	for epoch, name := range []string{"again", "by the next leader"} {
		t.Run(name, func(t *testing.T) {
			s := mem.New()
			r := newRig(t, s, nil)
			p := r.part()
			r.wantAppend(r.batch(producerAt{id: 7}, 1, "a"), 0)
			if _, err := s.Open(t.Context(), p.id(), int32(epoch), store.LogConfig{}); err != nil {
				t.Fatal(err)
			}
			if err := p.close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
