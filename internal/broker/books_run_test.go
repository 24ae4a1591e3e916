package broker_test

import (
	"context"
	"flag"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/redistest"
)

var lagSeed = flag.Uint64("lag.seed", 0, "what the runs that keep books of lag begin with; 0 for another one each time")

func seedOfBooks() uint64 {
	if *lagSeed != 0 {
		return *lagSeed
	}
	return uint64(time.Now().UnixNano())
}

// TestLagIsWhatBooksSay has clients produce, read, commit, delete, rebalance, begin and end
// transactions in an order that no one chose, restarts the broker, and compares what the
// API says with the books, every ten seconds for ten minutes of a clock that jumps.
func TestLagIsWhatBooksSay(t *testing.T) {
	t.Parallel()
	t.Run("disk", func(t *testing.T) {
		runBooks(t, map[string]string{"muster.store": "disk", "log.dir": t.TempDir()}, nil)
	})
	t.Run("redis, layout log", func(t *testing.T) {
		s := redistest.Single(t)
		runBooks(t, map[string]string{"muster.store": "redis", "muster.redis.url": s.URL()}, map[string]*string{"muster.redis.layout": new("log")})
	})
}

const bookRounds = 50

func runBooks(t *testing.T, props map[string]string, configs map[string]*string) {
	a := openAccount(t, seedOfBooks(), props)
	short := map[string]*string{"retention.ms": new("180000"), "segment.ms": new("30000")}
	maps.Copy(short, configs)
	a.topic("orders", 3, configs)
	a.topic("audits", 2, configs)
	a.topic("short", 1, short)
	a.begins()
	restarts := map[int]bool{3 + a.rng.IntN(12): true, bookRounds - 3: true}
	paused := map[spot]bool{}
	for round := range bookRounds {
		if restarts[round] {
			if a.partial.second != nil {
				a.release() // Whoever waits in a join is not answered by a broker that stops.
			}
			a.restart()
		}
		a.round(paused)
		a.look()
	}
	for _, s := range a.spots() {
		if err := a.ends(t.Context(), s, a.logs[s].next()); err != nil {
			t.Error("the books err: ", err)
		}
	}
	a.close()
}

// begins makes the groups.
func (a *account) begins() {
	for _, s := range a.spots() {
		a.produce(a.c, s, 1+a.rng.IntN(5), 0)
		switch s.topic {
		case "orders":
			for _, g := range []string{"steady", "silent", "again", "partial"} {
				a.commitOutside(g, s, a.rng.Int64N(2))
			}
		default:
			a.commitOutside("outside", s, 0)
		}
	}
	a.broker.Status().Pass(a.t.Context())
	a.looked(a.clock.now())
	for _, g := range []string{"steady", "silent", "again"} {
		a.join(g)
	}
	a.partial = &handmade{t: a.t, c: a.client(kgo.ClientID("by-hand")), other: a.client(kgo.ClientID("by-hand-2")), group: "partial"}
	a.partial.enter()
	a.release()
}

// round is what happens within ten seconds.
func (a *account) round(paused map[spot]bool) {
	for _, s := range a.spots() {
		var wrong time.Duration
		if a.chance(0.05) && s.topic != "short" {
			wrong = []time.Duration{-72 * time.Hour, 30 * time.Minute}[a.rng.IntN(2)]
		}
		n := a.rng.IntN(4)
		if s.topic == "orders" {
			n++ // So that it shows whether it is read.
		}
		a.produce(a.c, s, n, wrong)
		if a.chance(0.05) && s.topic != "short" {
			a.delete(s)
		}
		if s.topic == "orders" && a.logs[s].newest() < 0 {
			a.produce(a.c, s, 1, 0)
		}
	}
	a.transact()
	a.rebalance()
	a.pause(paused)
	a.consume(paused)
}

func (a *account) chance(p float64) bool { return a.rng.Float64() < p }

// transact begins, goes on with or ends a transaction.
func (a *account) transact() {
	all := a.spots()
	switch {
	case a.within == nil && a.chance(0.2), a.within != nil && a.chance(0.2):
		for range 1 + a.rng.IntN(2) {
			if s := all[a.rng.IntN(len(all))]; s.topic != "short" {
				a.begin(s)
			}
		}
	case a.within != nil && a.chance(0.15):
		a.end()
	}
}

// rebalance has members come and go.
func (a *account) rebalance() {
	switch steady := len(a.readers["steady"]); {
	case a.chance(0.1) && steady < 3:
		a.join("steady")
	case a.chance(0.1) && steady > 1:
		a.leave("steady")
	}
	switch {
	case a.partial.second == nil && a.chance(0.05):
		a.hold()
	case a.partial.second != nil && a.chance(0.2):
		a.release()
	}
}

// pause has a member pause a partition, or read it again.
func (a *account) pause(paused map[spot]bool) {
	s := spot{"orders", int32(a.rng.IntN(3))}
	p := a.group("silent").places[s]
	parts := map[string][]int32{s.topic: {s.partition}}
	switch c := a.readers["silent"][0].c; {
	case !paused[s] && a.chance(0.15):
		c.PauseFetchPartitions(parts)
		paused[s], p.fetches = true, false
	case paused[s] && a.chance(0.03):
		c.ResumeFetchPartitions(parts)
		delete(paused, s)
		p.fetches = true
	}
}

// consume has members read and commit.
func (a *account) consume(paused map[spot]bool) {
	a.readOn("steady", nil)
	a.readOn("silent", paused)
	a.readOn("again", nil)
	for _, s := range a.spots() {
		l := a.logs[s]
		if s.topic != "orders" {
			if a.chance(0.2) { // Forth and back, and beyond the end.
				a.commitOutside("outside", s, a.rng.Int64N(l.next()+20))
			}
			continue
		}
		if at := a.group("steady").places[s].committed; a.chance(0.7) && at < l.newest()+1 {
			a.commitAsMember("steady", s, l.newest()+1-a.rng.Int64N(1+min(3, l.newest()+1-at)))
		}
		if a.chance(0.01) && !paused[s] {
			a.commitAsMember("silent", s, l.newest()+1)
		}
		if a.chance(0.3) {
			a.commitAsMember("again", s, a.group("again").places[s].committed)
		}
	}
}

// look lets ten seconds pass, and compares what the broker sees.
func (a *account) look() {
	a.t.Helper()
	a.clock.jump(interval)
	must(a.t, a.agree(a.t.Context(), true))
}

// agree has the broker look, and compares. Retention may be faster: then once more.
func (a *account) agree(ctx context.Context, whole bool) error {
	for {
		if !a.stream {
			a.starts("short")
		}
		a.broker.Status().Pass(ctx)
		if whole {
			a.looked(a.clock.now())
		}
		err := a.compare(a.t, a.broker, whole)
		if err != nil {
			// The broker looks by itself too, perhaps between a list and a group. What is
			// wrong stays wrong, since no one does anything.
			a.broker.Status().Pass(ctx)
			err = a.compare(a.t, a.broker, whole)
		}
		if a.stream || !a.starts("short") {
			return err
		}
	}
}

// close has all members leave, while there is a broker.
func (a *account) close() {
	if a.partial != nil && a.partial.second != nil {
		a.release()
	}
	if a.within != nil {
		a.end()
	}
	for _, all := range a.readers {
		for _, r := range all {
			r.c.LeaveGroupContext(context.WithoutCancel(a.t.Context())) //nolint:errcheck // The broker closes next.
			r.c.Close()
		}
	}
}
