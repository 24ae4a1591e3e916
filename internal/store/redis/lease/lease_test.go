package lease

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/assert"
	"muster/internal/redistest"
	"muster/internal/store"
)

const longLease = time.Minute

func wantLive(t *testing.T, l *Leases, want map[int32]string) {
	t.Helper()
	live, err := l.Live(context.Background(), []int32{0, 1, 2, 3, 7})
	if err != nil {
		t.Fatal(err)
	}
	for id, value := range live {
		if want[id] != string(value) {
			t.Errorf("node id %d is registered with %q, not %q", id, value, want[id])
		}
	}
	if len(live) != len(want) {
		t.Errorf("%d brokers are registered, not %d", len(live), len(want))
	}
}

// watched is a client that knows when its last request was sent.
type watched struct {
	rueidis.Client
	sent time.Time
}

func (w *watched) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	w.sent = time.Now()
	return w.Client.Do(ctx, cmd)
}

// An answer may take as long as it likes: Redis counts from before it.
func TestABrokerBelievesFromBeforeItAsked(t *testing.T) {
	client := &watched{Client: connect(t, redistest.Single(t).URL())}
	l := New(client, redistest.Prefix(t), longLease)
	want := func() {
		t.Helper()
		if ends := client.sent.Add(longLease); l.Until().IsZero() || l.Until().After(ends) {
			t.Errorf("it believes until %v, and Redis may have let go at %v", l.Until(), ends)
		}
	}
	if err := l.Acquire(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	want()
	if ok, err := l.Renew(t.Context()); err != nil || !ok {
		t.Fatal(ok, err)
	}
	want()
}

func TestNodeIDHasOneHolder(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		ctx, client, prefix := context.Background(), connect(t, url), redistest.Prefix(t)
		a, b := New(client, prefix, longLease), New(client, prefix, longLease)
		if err := a.Acquire(ctx, 3, []byte("a \x00value")); err != nil {
			t.Fatal(err)
		}
		err := b.Acquire(ctx, 3, []byte("b"))
		var held *HeldError
		if !errors.Is(err, ErrHeld) || !errors.As(err, &held) {
			t.Fatalf("the second broker got %v", err)
		}
		if held.ID != 3 || string(held.Value) != "a \x00value" || held.For <= 0 || held.For > longLease || !strings.Contains(err.Error(), `"a \x00value"`) {
			t.Errorf("the holder is told wrongly: %v", err)
		}
		if !b.Until().IsZero() {
			t.Error("a broker without a node id believes that it is registered")
		}
		if err := a.Acquire(ctx, 3, []byte("new")); err != nil {
			t.Errorf("the holder cannot register again: %v", err)
		}
		wantLive(t, b, map[int32]string{3: "new"})
		if err := b.Acquire(ctx, 7, nil); err != nil {
			t.Fatal(err)
		}
		wantLive(t, a, map[int32]string{3: "new", 7: ""})
		if err := a.Release(ctx); err != nil {
			t.Fatal(err)
		}
		wantLive(t, a, map[int32]string{7: ""})
		if err := b.Acquire(ctx, 3, []byte("b")); err != nil {
			t.Errorf("a released node id cannot be taken: %v", err)
		}
	})
}

func TestLostNodeIDIsNeitherRenewedNorReleased(t *testing.T) {
	ctx, client, prefix := context.Background(), connect(t, redistest.Shared(t, redistest.KindSingle).URL()), redistest.Prefix(t)
	a, b := New(client, prefix, longLease), New(client, prefix, longLease)
	if err := a.Acquire(ctx, 1, []byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := client.Do(ctx, client.B().Del().Key(a.key(1)).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if ok, err := a.Renew(ctx); ok || err != nil {
		t.Errorf("renewing what is gone: %v, %v", ok, err)
	}
	if err := b.Acquire(ctx, 1, []byte("b")); err != nil {
		t.Fatal(err)
	}
	if ok, err := a.Renew(ctx); ok || err != nil {
		t.Errorf("renewing what is another's: %v, %v", ok, err)
	}
	if !a.Until().IsZero() {
		t.Error("a broker that lost its node id believes that it is registered")
	}
	if err := a.Release(ctx); err != nil {
		t.Fatal(err)
	}
	wantLive(t, a, map[int32]string{1: "b"})
	if ok, err := b.Renew(ctx); !ok || err != nil {
		t.Errorf("the holder's renewal: %v, %v", ok, err)
	}
}

func TestRegistrationExpiresAfterTheBroker(t *testing.T) {
	ctx, client, prefix := context.Background(), connect(t, redistest.Shared(t, redistest.KindSingle).URL()), redistest.Prefix(t)
	const ttl = 3 * time.Second
	a, b := New(client, prefix, ttl), New(client, prefix, ttl)
	before := time.Now()
	if err := a.Acquire(ctx, 1, nil); err != nil {
		t.Fatal(err)
	}
	until := a.Until()
	if until.Before(before.Add(ttl)) || until.After(time.Now().Add(ttl)) {
		t.Errorf("the belief ends %v after the request", until.Sub(before))
	}
	for renewed := 0; renewed < 3; renewed++ {
		if ok, err := a.Renew(ctx); !ok || err != nil {
			t.Fatalf("renewing: %v, %v", ok, err)
		}
	}
	if !a.Until().After(until) {
		t.Error("a renewal does not prolong the belief")
	}
	redistest.Eventually(t, "the registration to expire", func() bool { return b.Acquire(ctx, 1, nil) == nil })
	if now := time.Now(); now.Before(a.Until()) {
		t.Errorf("another broker was registered %v before the belief ended", a.Until().Sub(now))
	}
}

func TestBrokersPickDifferentFreeNodeIDs(t *testing.T) {
	ctx, client, prefix := context.Background(), connect(t, redistest.Shared(t, redistest.KindCluster).URL()), redistest.Prefix(t)
	if err := New(client, prefix, longLease).Acquire(ctx, 3, nil); err != nil {
		t.Fatal(err)
	}
	const brokers = 70 // More than are looked at in one round trip.
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := make(map[int32]bool)
	for range brokers {
		wg.Go(func() {
			id, err := New(client, prefix, longLease).AcquireFree(ctx, 1, []byte("x"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil || seen[id] || id == 3 || id < 1 || id > brokers+1 {
				t.Errorf("picked node id %d, %v", id, err)
			}
			seen[id] = true
		})
	}
	wg.Wait()
}

// A broker looks on where whole ranges of node ids are taken, and passes over none that it cannot
// take for another reason.
func TestFreeNodeIDsAreLookedForInRanges(t *testing.T) {
	ctx, client, prefix := t.Context(), connect(t, redistest.Shared(t, redistest.KindSingle).URL()), redistest.Prefix(t)
	l := New(client, prefix, longLease)
	const taken = maxRanges + 2*freeRange
	var cmds rueidis.Commands
	for id := range int32(taken) {
		cmds = append(cmds, client.B().Set().Key(l.key(id)).Value("other x").Build())
	}
	for _, r := range client.DoMulti(ctx, cmds...) {
		assert.Must(t, r.Error())
	}
	id, err := l.AcquireFree(ctx, 0, nil)
	assert.True(t, id == taken && err == nil, "it has %d, %v", id, err)
	inTheWay := l.key(taken + 1)
	assert.Must(t, client.Do(ctx, client.B().Rpush().Key(inTheWay).Element("x").Build()).Error())
	_, err = New(client, prefix, longLease).AcquireFree(ctx, 0, nil)
	assert.Error(t, err, "a key of another kind is in the way")
	live, err := l.Live(ctx, []int32{taken + 2})
	assert.True(t, len(live) == 0 && err == nil, "the one after it is registered: %v, %v", live, err)
}

// Who gives a node id up does not believe to have it any more, even if Redis does not answer.
func TestABrokerDoesNotBelieveInWhatItGaveUp(t *testing.T) {
	s := redistest.Single(t)
	l := New(connect(t, s.URL()), "p", longLease)
	assert.Must(t, l.Acquire(t.Context(), 1, nil))
	assert.Must(t, l.Release(t.Context()))
	assert.True(t, l.Until().IsZero(), "it believes until %v", l.Until())
	assert.Must(t, l.Acquire(t.Context(), 1, nil))
	s.Nodes[0].Kill()
	assert.ErrorIs(t, l.Release(t.Context()), store.ErrUnavailable)
	assert.True(t, l.Until().IsZero(), "without an answer it believes until %v", l.Until())
}

func TestLeasesSayThatRedisIsAway(t *testing.T) {
	ctx, s := context.Background(), redistest.Single(t)
	l := New(connect(t, s.URL()), "p", longLease)
	if ok, err := l.Renew(ctx); ok || err == nil {
		t.Error("renewed what was never acquired")
	}
	if err := l.Acquire(ctx, 1, nil); err != nil {
		t.Fatal(err)
	}
	until := l.Until()
	s.Nodes[0].Kill()
	if ok, err := l.Renew(ctx); ok || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("renewing: %v, %v", ok, err)
	}
	if _, err := l.Live(ctx, []int32{1}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("looking for live brokers: %v", err)
	}
	if _, err := l.AcquireFree(ctx, 1, nil); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("acquiring: %v", err)
	}
	if !l.Until().Equal(until) {
		t.Error("an unanswered renewal changed what the broker may believe")
	}
	if err := l.Release(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("releasing: %v", err)
	}
}
