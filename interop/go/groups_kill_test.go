package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/internal/assert"
)

const (
	killTopic   = "killed"
	killKills   = 100
	killGroups  = 4
	killMembers = 3

	killSession   = 600 * time.Millisecond
	killRebalance = 600 * time.Millisecond
	killHeartbeat = 60 * time.Millisecond
)

// TestKillsDuringRebalancesLoseNoCommit kills the broker again and again while
// members of some groups join, leave, crash and commit all the time, mostly at a
// moment when a group rebalances. A commit that was acknowledged is never lost,
// and in the end every group is Stable within its timeouts.
func TestKillsDuringRebalancesLoseNoCommit(t *testing.T) {
	data, addr := t.TempDir(), fixedPort(t)
	flags := slices.Concat([]string{"--listen", addr}, shortLease, groupSettings)
	b := serve(t, data, flags...)
	createTopic(t, addr, killTopic, groupPartitions)
	log := newCommitLog()
	churn := startChurn(t, addr, log)
	admin := kadm.NewClient(connect(t, addr, impatient()...))
	began := time.Now()
	states := map[string]int{}
	kills := often(killKills)
	for range kills {
		log.mustGrow(t)
		states[randomMoment(t, admin, churn.groups)]++
		b.kill()
		b = serve(t, data, flags...)
	}
	restarted := time.Now()
	churn.calmDown()
	for _, group := range churn.groups {
		mustSettle(t, admin, group, restarted)
	}
	log.mustGrow(t)
	churn.stop()
	for _, group := range churn.groups {
		assert.NoError(t, log.check(t.Context(), admin, group), "in the end")
	}
	assert.NoError(t, log.failed())
	t.Logf("%d kills in %s: %d commits acknowledged by %d members; a group was last seen %v",
		kills, restarted.Sub(began).Round(time.Millisecond), log.acks(), churn.members.Load(), states)
}

// randomMoment waits for a rebalance, not for long, and then for a moment of it.
// It returns the last state that it saw.
func randomMoment(t *testing.T, admin *kadm.Client, groups []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	group, last := groups[rand.IntN(len(groups))], "?"
	for ctx.Err() == nil {
		if d, err := admin.DescribeGroups(ctx, group); err == nil {
			last = d[group].State
		}
		if last == "PreparingRebalance" || last == "CompletingRebalance" {
			break
		}
	}
	// The random moment: this is no wait for anything.
	<-time.After(time.Duration(rand.IntN(20_000)) * time.Microsecond)
	return last
}

// mustSettle waits until a group is Stable with its last members. The longest
// way there: a member that is gone must be missed, and the leader may be one.
func mustSettle(t *testing.T, admin *kadm.Client, group string, since time.Time) {
	t.Helper()
	const (
		slow  = 2 * time.Minute // for the machine and the clients' own pauses
		limit = killSession + 2*killRebalance + slow
	)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		d, err := admin.DescribeGroups(ctx, group)
		cancel()
		took := time.Since(since).Round(time.Millisecond)
		if err == nil && d[group].State == "Stable" && len(d[group].Members) == killMembers {
			t.Logf("%s is Stable %s after the last restart", group, took)
			return
		}
		if took > limit {
			t.Fatalf("%s is %s with %d members %s after the last restart, error %v", group, d[group].State, len(d[group].Members), took, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// commitLog knows the highest acknowledged commit of each group and partition.
type commitLog struct {
	mu    sync.Mutex
	more  *sync.Cond // something was acknowledged, or failed
	acked map[string]map[int32]int64
	count int
	err   error
}

func newCommitLog() *commitLog {
	l := &commitLog{acked: map[string]map[int32]int64{}}
	l.more = sync.NewCond(&l.mu)
	return l
}

func (l *commitLog) ack(group string, partition int32, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.acked[group] == nil {
		l.acked[group] = map[int32]int64{}
	}
	l.acked[group][partition] = max(l.acked[group][partition], offset)
	l.count++
	l.more.Broadcast()
}

func (l *commitLog) acks() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

func (l *commitLog) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.more.Broadcast()
}

func (l *commitLog) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// mustGrow waits for commits that are acknowledged after the call.
func (l *commitLog) mustGrow(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), groupTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.more.Broadcast()
	})()
	l.mu.Lock()
	defer l.mu.Unlock()
	for before := l.count; l.count < before+2*groupPartitions && l.err == nil; {
		assert.Must(t, ctx.Err(), "no commit acknowledged for %s", groupTimeout)
		l.more.Wait()
	}
	must(t, l.err)
}

// fetch reads a group's committed offsets, and complains if one is below what was
// acknowledged before the call.
func (l *commitLog) fetch(ctx context.Context, admin *kadm.Client, group string) (map[int32]int64, error) {
	l.mu.Lock()
	acked := map[int32]int64{}
	for p, offset := range l.acked[group] {
		acked[p] = offset
	}
	l.mu.Unlock()
	fetched, err := admin.FetchOffsets(ctx, group)
	if err == nil {
		err = fetched.Error()
	}
	if err != nil {
		return nil, err
	}
	committed := map[int32]int64{}
	fetched.Each(func(o kadm.OffsetResponse) { committed[o.Partition] = o.At })
	for p, offset := range acked {
		if committed[p] < offset {
			l.fail(fmt.Errorf("%s, partition %d: offset %d was acknowledged, and then %d is committed", group, p, offset, committed[p]))
		}
	}
	return committed, nil
}

// check fetches until it gets an answer.
func (l *commitLog) check(ctx context.Context, admin *kadm.Client, group string) error {
	ctx, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	for {
		_, err := l.fetch(ctx, admin, group)
		if err == nil {
			return l.failed()
		}
		if ctx.Err() != nil {
			return err
		}
	}
}
