package interop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

const (
	// phaseTime is how long each phase of attacks goes on.
	phaseTime = 10 * time.Second
	// hostileMemory is the most memory that the broker may take: some 500 MB, of which
	// half is garbage, and more of that while others keep the processors busy.
	hostileMemory = 800 << 20
	// What is read from Redis is in memory until it is sent, and is garbage then.
	hostileHeld = 400 << 20
	// goodPatience is the longest that the good client may have to wait for one
	// record to be acknowledged and read back.
	goodPatience = 10 * time.Second
)

// TestHostileClientsDisturbNobody throws all kinds of bad input at a broker while
// a good client works on. The good client must not see a single error or lost
// connection, and the broker must neither end nor take memory without bound.
func TestHostileClientsDisturbNobody(t *testing.T) {
	b := serve(t, t.TempDir())
	createTopic(t, b.addr(), "good", 3)
	createTopic(t, b.addr(), "prey", 3)
	createTopic(t, b.addr(), "compacted", 1, "cleanup.policy", "compact")
	fillBulk(t, b.addr())
	storeBombs(t, b.addr())
	a := newAttacker(t, b.addr())
	good := newGoodClient(t, b.addr())

	whole, stop := context.WithCancel(t.Context())
	defer stop()
	held := a.start(whole, heldConnections)
	for _, phase := range attackPhases {
		ctx, cancel := context.WithTimeout(whole, phaseTime)
		wait := a.start(ctx, phase)
		good.work(ctx, math.MaxInt)
		wait(t)
		cancel()
		t.Logf("so far the good client made %d rounds, the longest took %s, and the broker took %d MB",
			good.n, good.longest.Round(time.Millisecond), b.peakMemory()>>20)
	}
	stop()
	held(t)
	assert.NoError(t, a.failure())
	limit := int64(hostileMemory)
	if storeKind != "disk" {
		limit += hostileHeld
	}
	if peak := b.peakMemory(); peak > limit {
		t.Errorf("the broker took %d MB of memory, more than %d", peak>>20, limit>>20)
	}
	good.work(t.Context(), 10) // With the attackers gone.
	good.check()
	assert.MustTrue(t, b.running(), "the broker has ended")
	waitForSockets(t, b, 50)
}

// fillBulk makes a topic of which a fetch returns a lot.
func fillBulk(t *testing.T, addr string) {
	t.Helper()
	createTopic(t, addr, "bulk", 1)
	w := dial(t, addr)
	for range 32 {
		mustProduce(w, "bulk", 0, batch{values: []string{strings.Repeat("bulk", 200<<10)}})
	}
}

// storeBombs makes a topic of batches that unpack to very much, each in a
// partition of its own.
func storeBombs(t *testing.T, addr string) {
	t.Helper()
	createTopic(t, addr, "bombed", int32(len(bombs())), keptBatches...)
	w := dial(t, addr)
	for i, b := range bombs() {
		p := produced(t, ask[*kmsg.ProduceResponse](w, produceRequest("bombed", int32(i), -1, b)))
		wantCode(t, "store a bomb", p.ErrorCode, nil)
	}
}

// attacker is what attacks share.
type attacker struct {
	addr string
	apis []kmsg.ApiVersionsResponseApiKey

	mu  sync.Mutex
	err error // the first sign that the broker misbehaves
}

func newAttacker(t *testing.T, addr string) *attacker {
	t.Helper()
	resp := ask[*kmsg.ApiVersionsResponse](dial(t, addr), kmsg.NewPtrApiVersionsRequest())
	assert.MustTrue(t, len(resp.ApiKeys) != 0, "the broker serves nothing")
	return &attacker{addr: addr, apis: resp.ApiKeys}
}

// start begins attacks that go on until the context ends. It returns a function
// that waits for their end and tells how often they were made.
func (a *attacker) start(ctx context.Context, attacks []attack) func(*testing.T) {
	var running sync.WaitGroup
	counts := make([]atomic.Int64, len(attacks))
	for i, attack := range attacks {
		for range attack.clients {
			running.Go(func() {
				for ctx.Err() == nil {
					attack.run(ctx, a)
					counts[i].Add(1)
				}
			})
		}
	}
	return func(t *testing.T) {
		running.Wait()
		for i, attack := range attacks {
			t.Logf("%s: %d times", attack.name, counts[i].Load())
		}
	}
}

// connect opens a connection, which the broker must accept, for the length of
// an attack.
func (a *attacker) connect(ctx context.Context) (net.Conn, bool) {
	if ctx.Err() != nil {
		return nil, false
	}
	c, err := net.DialTimeout("tcp", a.addr, goodPatience)
	if err != nil {
		a.fail(fmt.Errorf("the broker does not accept connections: %w", err))
		return nil, false
	}
	return c, true
}

func (a *attacker) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = err
	}
}

func (a *attacker) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// goodClient writes records and reads them back, one after another.
type goodClient struct {
	t       *testing.T
	cl      *kgo.Client
	n       int
	longest time.Duration
	lost    atomic.Int64 // connections
}

func newGoodClient(t *testing.T, addr string) *goodClient {
	t.Helper()
	g := &goodClient{t: t}
	from := map[int32]kgo.Offset{0: kgo.NewOffset().AtStart(), 1: kgo.NewOffset().AtStart(), 2: kgo.NewOffset().AtStart()}
	g.cl = connect(t, addr,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"good": from}),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.WithHooks(g), kgo.RecordRetries(0), kgo.AllowIdempotentProduceCancellation(), kgo.RequestRetries(0), kgo.KeepRetryableFetchErrors(),
		kgo.ConnIdleTimeout(10*time.Minute), // A connection that the client itself closes is not lost.
	)
	return g
}

// OnBrokerDisconnect implements kgo.HookBrokerDisconnect.
func (g *goodClient) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { g.lost.Add(1) }

// work makes rounds until the context ends, but not more than limit.
func (g *goodClient) work(ctx context.Context, limit int) {
	g.t.Helper()
	for ; ctx.Err() == nil && limit > 0; limit-- {
		began := time.Now()
		g.round()
		g.longest = max(g.longest, time.Since(began))
	}
}

// goodValue makes values of all sizes, since large requests go another way
// through the broker than small ones.
func goodValue(n int) string {
	size := n % 100
	switch {
	case n%100 == 0:
		size = 500_000
	case n%10 == 0:
		size = 40_000
	}
	return fmt.Sprintf("%d %s", n, strings.Repeat("x", size))
}

// round writes one record and reads it back.
func (g *goodClient) round() {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), goodPatience)
	defer cancel()
	want := goodValue(g.n)
	g.n++
	assert.Must(g.t, g.cl.ProduceSync(ctx, &kgo.Record{Topic: "good", Value: []byte(want)}).FirstErr(), "round %d: produce", g.n)
	for {
		fetches := g.cl.PollFetches(ctx)
		assert.Must(g.t, fetches.Err(), "round %d: fetch", g.n)
		recs := fetches.Records()
		if len(recs) == 0 {
			continue
		}
		if len(recs) != 1 || string(recs[0].Value) != want {
			g.t.Fatalf("round %d: read %d records, the first %.20q, want one, %.20q", g.n, len(recs), recs[0].Value, want)
		}
		return
	}
}

// check checks that no connection was lost, and that the topic has exactly what
// was written.
func (g *goodClient) check() {
	g.t.Helper()
	if n := g.lost.Load(); n > 0 {
		g.t.Errorf("the good client lost its connection %d times", n)
	}
	ends, err := endOffsets(g.t.Context(), g.cl, "good")
	must(g.t, err)
	sum := 0
	for _, end := range ends {
		sum += int(end)
	}
	assert.True(g.t, sum == g.n, "the good client wrote %d records, the topic has %d", g.n, sum)
}

// waitForSockets waits until the broker has let go of the attackers'
// connections.
func waitForSockets(t *testing.T, b *process, limit int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", b.pid())
	deadline := time.Now().Add(20 * time.Second)
	for {
		files, err := os.ReadDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			t.Skip("open sockets cannot be counted here")
		}
		sockets := 0
		for _, f := range files {
			if target, err := os.Readlink(dir + "/" + f.Name()); err == nil && strings.HasPrefix(target, "socket:") {
				sockets++
			}
		}
		if sockets <= limit {
			return
		}
		assert.MustFalse(t, time.Now().After(deadline), "the broker still has %d sockets open, long after the clients have left", sockets)
		<-time.After(50 * time.Millisecond)
	}
}

// chance is true once in n times.
func chance(n int) bool { return rand.IntN(n) == 0 }
