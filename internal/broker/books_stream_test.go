package broker_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/redistest"
)

// sequenceBits is by how many bits an offset of layout stream is shifted to be a time.
const sequenceBits = 10

// TestLagOfStreamsIsWhatBooksAndRedisSay is TestLagIsWhatBooksSay of layout stream, where
// others write and delete too, and Redis is asked how many entries there are.
func TestLagOfStreamsIsWhatBooksAndRedisSay(t *testing.T) {
	if testing.Short() {
		t.Skip("TestLagIsWhatBooksSay has the same goroutines")
	}
	t.Parallel()
	s := redistest.Single(t)
	a := openAccount(t, seedOfBooks(), map[string]string{"muster.store": "redis", "muster.redis.url": s.URL(), "muster.redis.layout": "stream"})
	a.stream = true
	raw := &rawRedis{a, s.Client(t), s.Nodes[0], map[spot]bool{}, map[spot]int64{}}
	a.topic("orders", 3, nil)
	a.topic("audits", 2, nil)
	a.beginStreams()
	restart := 3 + a.rng.IntN(8)
	for round := range 44 {
		if round == restart {
			a.restart()
		}
		raw.round()
		a.look()
		raw.check()
	}
	raw.native()
	a.close()
}

func (a *account) beginStreams() {
	for _, s := range a.spots() {
		a.produce(a.c, s, 1+a.rng.IntN(5), 0)
		group := "outside"
		if s.topic == "orders" {
			a.commitOutside("silent", s, a.logs[s].records[0].offset)
			group = "steady"
		}
		a.commitOutside(group, s, a.logs[s].records[0].offset)
	}
	a.broker.Status().Pass(a.t.Context())
	a.looked(a.clock.now())
	a.join("steady")
	a.join("silent")
}

// rawRedis is a client of Redis that knows nothing of Kafka.
type rawRedis struct {
	*account
	redis rueidis.Client
	node  *redistest.Node
	holes map[spot]bool // Entries were deleted one by one.
	// overtaken is where group steady had committed when entries after that were deleted.
	overtaken map[spot]int64
}

func (r *rawRedis) do(words ...string) rueidis.RedisResult {
	return r.redis.Do(r.t.Context(), r.redis.B().Arbitrary(words[0]).Keys(words[1]).Args(words[2:]...).Build())
}

func (s spot) key() string { return fmt.Sprintf("muster:%s:%d", s.topic, s.partition) }

// offsetOf is the offset of an entry.
func offsetOf(t *testing.T, id string) int64 {
	t.Helper()
	ms, seq, _ := strings.Cut(id, "-")
	m, err := strconv.ParseInt(ms, 10, 64)
	n, err2 := strconv.ParseInt(seq, 10, 64)
	must(t, errors.Join(err, err2))
	return m<<sequenceBits | n
}

// entry is the id of an offset.
func entry(offset int64) string {
	return fmt.Sprintf("%d-%d", offset>>sequenceBits, offset&(1<<sequenceBits-1))
}

func (r *rawRedis) round() {
	for _, s := range r.spots() {
		l := r.logs[s]
		if r.chance(0.2) {
			id, err := r.do("XADD", s.key(), "*", "value", "theirs").ToString()
			must(r.t, err)
			at := offsetOf(r.t, id)
			l.add(written{offset: at, at: r.clock.now(), told: time.UnixMilli(at >> sequenceBits)})
		}
		r.produce(r.c, s, 1+r.rng.IntN(4), 0)
		if r.chance(0.05) {
			r.cut(s, r.chance(0.5))
		}
	}
	r.rebalanceStreams()
	r.readOn("steady", nil)
	r.readOn("silent", nil)
	for _, s := range r.spots() {
		l := r.logs[s]
		at := l.records[r.rng.IntN(len(l.records))].offset + r.rng.Int64N(2)
		switch {
		case s.topic != "orders":
			if r.chance(0.2) {
				r.commitOutside("outside", s, at)
			}
		case r.chance(0.6) && at > r.group("steady").places[s].committed:
			r.commitAsMember("steady", s, at)
		}
	}
}

func (r *rawRedis) rebalanceStreams() {
	switch n := len(r.readers["steady"]); {
	case n == 1 && r.chance(0.1):
		r.join("steady")
	case n == 2 && r.chance(0.1):
		r.leave("steady")
	}
}

// cut deletes what is before an entry, or that one alone. The last stays, so that readers
// have something to get to.
func (r *rawRedis) cut(s spot, alone bool) {
	l := r.logs[s]
	i := r.rng.IntN(len(l.records))
	if i == len(l.records)-1 {
		return
	}
	if alone {
		r.holes[s] = true
		must(r.t, r.do("XDEL", s.key(), entry(l.records[i].offset)).Error())
		r.lose(s, l.records[i:i+1])
		l.records = append(l.records[:i:i], l.records[i+1:]...)
		r.had[s] = min(r.had[s], len(l.records))
		return
	}
	if resp, err := r.adm.DeleteRecords(r.t.Context(), offsetsOf(s.topic, s.partition, l.records[i].offset)); err != nil || resp.Error() != nil {
		r.t.Fatal(err, resp.Error())
	}
	if p := r.group("steady").places[s]; p != nil && i > 0 && p.committed <= l.records[i-1].offset {
		r.overtaken[s] = p.committed
	}
	r.lose(s, l.records[:i])
	r.had[s] -= min(i, r.had[s])
	l.records = l.records[i:]
}

// lose notes for groups which records they will never read. Where offsets have gaps, no one
// can tell them from what was read, if the group commits before the next look.
func (r *rawRedis) lose(s spot, gone []written) {
	for _, g := range r.groups {
		for i := range gone {
			if p := g.places[s]; p != nil && gone[i].offset >= p.committed {
				g.lost++
			}
		}
	}
}

// check asks Redis whether the books are right, with which the broker agrees.
func (r *rawRedis) check() {
	r.t.Helper()
	for s, l := range r.logs {
		if n, err := r.do("XLEN", s.key()).AsInt64(); err != nil || int(n) != len(l.records) {
			r.t.Fatalf("%v has %d entries (%v), the books have %d", s, n, err, len(l.records))
		}
		for name, g := range r.groups {
			p := g.places[s]
			if p == nil {
				continue
			}
			want, _ := l.unread(p.committed)
			if all, err := r.do("XRANGE", s.key(), entry(p.committed), "+").ToArray(); err != nil || int64(len(all)) != want {
				r.t.Fatalf("%s has %d entries of %v before it (%v), by the books %d", name, len(all), s, err, want)
			}
		}
	}
}

// native compares the lag that Redis itself keeps of groups that read, where it does:
// entries that were deleted one by one make it give up, and it counts those that were
// deleted unread until the group commits again. It is told a moment after a commit.
func (r *rawRedis) native() {
	r.t.Helper()
	for s, l := range r.logs {
		p := r.group("steady").places[s]
		if p == nil || r.holes[s] {
			continue
		}
		if at, ok := r.overtaken[s]; ok && at == p.committed {
			continue
		}
		want, _ := l.unread(p.committed)
		eventually(r.t, fmt.Sprintf("XINFO of %v", s), func(context.Context) error {
			if got := shownLagOf(r.t, r.node, s.key(), "steady"); got != want {
				return fmt.Errorf("a lag of %d, want %d", got, want)
			}
			return nil
		})
	}
}
