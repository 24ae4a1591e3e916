package broker_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/store/vfs"
)

// onDisk starts a broker on a file system in memory.
func onDisk(t *testing.T, fs *vfs.Mem, p *post) *broker.Broker {
	t.Helper()
	return start(t, map[string]string{
		"muster.store": "disk", "log.dir": "data", "num.partitions": "3",
		"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1",
	}, func(c *broker.Config) { c.On(fs) }, p.through)
}

// image is what a crash leaves.
type image struct {
	fs    *vfs.Mem
	power bool // was cut: what was not flushed is gone
	sent  int  // requests with markers that had been sent before
}

// crashes keeps what a crash before each operation on the disk would leave.
type crashes struct {
	mu     sync.Mutex
	images []image
}

func (c *crashes) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.images)
}

func (c *crashes) take(fs *vfs.Mem, p *post) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range 100 {
		runtime.Gosched() // So that those go on who do not wait for this operation.
	}
	sent := len(p.seen())
	c.images = append(c.images, image{fs.CrashStrict(), true, sent}, image{fs.CrashKeepAll(), false, sent})
}

// TestKillAtEachDurabilityStep ends a transaction in three partitions and the offsets of a
// group, and kills the broker, or cuts its power, before every operation on the disk from
// there on. A broker that starts on what is left ends the transaction as it was decided; if that
// was lost it is still open, and the client, which has no answer, ends it.
func TestKillAtEachDurabilityStep(t *testing.T) {
	t.Parallel()
	for name, opts := range versions {
		for _, commit := range []bool{true, false} {
			if testing.Short() && !commit {
				continue
			}
			t.Run(fmt.Sprintf("%s, commit %v", name, commit), func(t *testing.T) { killAtEachStep(t, opts, commit) })
		}
	}
}

func killAtEachStep(t *testing.T, opts []kgo.Opt, commit bool) {
	fs, taken, p := vfs.NewMem(), &crashes{}, newPost(false)
	p.losing = 1 // So that it takes several requests.
	b := onDisk(t, fs, p)
	produce(t, client(t, b), "t", 0, 1)
	c := begin(t, b, "x0", opts...)
	pid, epoch, err := c.ProducerID(t.Context())
	must(t, err)
	fs.SetHook(func(op vfs.Op) error {
		if !op.Kind.ReadOnly() {
			taken.take(fs, p)
		}
		return nil
	})
	must(t, c.EndTransaction(t.Context(), kgo.TransactionEndTry(commit)))
	taken.take(fs, p)
	answered := taken.count() - 2
	wantState(t, b, "x0", ended("Complete", commit))
	fs.SetHook(nil)
	taken.take(fs, p)
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = "x0", pid, epoch, commit
	steps := map[image]map[string]bool{{power: true}: {}, {}: {}}
	for i, im := range taken.images {
		step := restart(t, fmt.Sprintf("image %d, power %v", i, im.power), im, end, opts)
		steps[image{power: im.power}][step] = true
		if step == "Ongoing 4" && (i >= answered || im.sent > 0) {
			t.Errorf("image %d, power %v: EndTxn was answered %v, and %d requests with markers sent, before it was decided", i, im.power, i >= answered, im.sent)
		}
	}
	for at, seen := range steps {
		wantSteps(t, fmt.Sprintf("power cut %v", at.power), seen, commit, !at.power)
	}
}

// wantSteps wants a transaction in four partitions to have ended step by step, and in no other
// order: decided, then told to one partition after the other, then forgotten. That it
// is over need not be flushed.
func wantSteps(t *testing.T, what string, seen map[string]bool, commit, over bool) {
	t.Helper()
	prepared, last := ended("Prepare", commit), ended("Complete", commit)+" 0"
	want := map[string]bool{"Ongoing 4": true, last: over}
	for left := range 5 {
		want[fmt.Sprint(prepared, " ", left)] = true
	}
	for step, must := range want {
		assert.False(t, must && !seen[step], "%s: there was no crash at %q, only at %v", what, step, seen)
	}
	for step := range seen {
		if _, ok := want[step]; !ok {
			t.Errorf("%s: a crash at %q, which must not be", what, step)
		}
	}
}

func ended(how string, commit bool) string {
	if commit {
		return how + "Commit"
	}
	return how + "Abort"
}

// restart starts a broker on what a crash left, and returns how far the transaction had
// come: its state, and in how many partitions it was open, that of the offsets among them.
func restart(t *testing.T, name string, im image, end *kmsg.EndTxnRequest, opts []kgo.Opt) (step string) {
	t.Run(name, func(t *testing.T) {
		p := newPost(true)
		b := onDisk(t, im.fs, p)
		state := stateAfterLoad(t, b)
		records, offsets := openEverywhere([]*broker.Broker{b}, end.ProducerID)
		step = fmt.Sprintf("%s %d", state, records+offsets)
		p.hold(false)
		if state == "Ongoing" {
			repeatEnd(t, client(t, b, opts...), *end)
		}
		wantState(t, b, "x0", ended("Complete", end.Commit))
		want, at := map[string]int{}, int64(-1)
		if end.Commit {
			want["x0"], at = 3, 1
		}
		wantCommitted(t, b, want)
		wantStable(t, b, map[string]int64{"x0": at})
		// Its producer goes on.
		commitAll(t, []*kgo.Client{begin(t, b, "x0", opts...)})
		want["x0"] += 3
		wantCommitted(t, b, want)
	})
	return step
}

// stateAfterLoad returns the state of x0 as the disk has it, since markers are held up.
func stateAfterLoad(t *testing.T, b *broker.Broker) (state string) {
	t.Helper()
	c := client(t, b)
	eventually(t, "load", func(ctx context.Context) error {
		got, err := states(ctx, c, "x0")
		state = got["x0"]
		return err
	})
	return state
}

// repeatEnd is the client that has had no answer.
func repeatEnd(t *testing.T, c *kgo.Client, end kmsg.EndTxnRequest) {
	t.Helper()
	eventually(t, "EndTxn", func(ctx context.Context) error {
		resp, err := end.RequestWith(ctx, c)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		return err
	})
}
