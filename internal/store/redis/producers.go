package redis

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"muster/internal/store"
)

// producerExpiry is how long an idle producer is remembered at least. The
// partition may forget it earlier.
const producerExpiry = 7 * 24 * time.Hour

// producer is what is kept of a producer, and when it last appended, in ms of
// the server's time.
type producer struct {
	store.Producer
	when int64
}

// producerArgs are the fields and values that a transaction writes into the
// hash of producers.
func producerArgs(tx *transaction) []string {
	args := make([]string, 0, 2*len(tx.producers))
	for id, p := range tx.producers {
		args = append(args, decimal(id), formatProducer(p))
	}
	return args
}

// formatProducer writes the state of a producer as
//
//	<when, ms> <producer epoch> <last timestamp> <coordinator epoch> <first offset of its transaction>;<base sequence> <last sequence> <base offset> <last offset> <timestamp>;…
//
// with the oldest batch first. A producer without transactions has the first three
// numbers only, as brokers wrote and read them that knew no others.
func formatProducer(p producer) string {
	b := fmt.Appendf(nil, "%d %d %d", p.when, p.Epoch, p.LastTimestamp)
	if p.CoordinatorEpoch != -1 || p.TxnFirst != store.NoTxn {
		b = fmt.Appendf(b, " %d %d", p.CoordinatorEpoch, p.TxnFirst)
	}
	for _, x := range p.Batches {
		b = append(b, ';')
		for i, n := range []int64{int64(x.BaseSequence), int64(x.LastSequence), x.BaseOffset, x.LastOffset, x.Timestamp} {
			if i > 0 {
				b = append(b, ' ')
			}
			b = strconv.AppendInt(b, n, 10)
		}
	}
	return string(b)
}

// parseProducer reads what formatProducer wrote.
func parseProducer(id, text string) (p producer, err error) {
	bad := fmt.Errorf("%w: producer %q is %q", store.ErrCorrupt, id, text)
	if p.ID, err = strconv.ParseInt(id, 10, 64); err != nil {
		return p, bad
	}
	head, rest, more := strings.Cut(text, ";")
	n, ok := numbers(head, 5)
	if !ok {
		if n, ok = numbers(head, 3); !ok {
			return p, bad
		}
		n = append(n, -1, store.NoTxn)
	}
	p.when, p.Epoch, p.LastTimestamp = n[0], int16(n[1]), n[2]
	p.CoordinatorEpoch, p.TxnFirst = int32(n[3]), n[4]
	for more {
		var one string
		one, rest, more = strings.Cut(rest, ";")
		x, ok := numbers(one, 5)
		if !ok {
			return p, bad
		}
		p.Batches = append(p.Batches, store.ProducerBatch{
			BaseSequence: int32(x[0]), LastSequence: int32(x[1]), BaseOffset: x[2], LastOffset: x[3], Timestamp: x[4],
		})
	}
	return p, nil
}

// numbers parses a list of exactly n numbers.
func numbers(text string, n int) ([]int64, bool) {
	parts := strings.Split(text, " ")
	if len(parts) != n {
		return nil, false
	}
	out := make([]int64, n)
	for i, part := range parts {
		v, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}

// loadProducers reads the hash of producers, and forgets those that have been
// idle for long.
func (l *log) loadProducers(ctx context.Context, states map[string]string, now int64) error {
	l.producers = make(map[int64]producer, len(states))
	for id, text := range states {
		p, err := parseProducer(id, text)
		if err != nil {
			return err
		}
		l.producers[p.ID] = p
	}
	return l.forgetIdle(ctx, now)
}

// forgetIdle forgets the producers that have been idle for long, but none with an
// open transaction: no one could end it in the right place. Appends must
// not be under way, since one of them may be a producer's that comes back.
func (l *log) forgetIdle(ctx context.Context, now int64) error {
	var idle []string
	l.mu.Lock()
	for id, p := range l.producers {
		if p.when < now-producerExpiry.Milliseconds() && p.TxnFirst == store.NoTxn {
			idle = append(idle, decimal(id))
			delete(l.producers, id)
		}
	}
	l.mu.Unlock()
	for part := range slices.Chunk(idle, 1000) {
		cmd := l.store.eval(forgetScript, []string{l.keys.stream, l.keys.meta, l.keys.producers}, append([]string{l.owner}, part...))
		if err := l.store.do(ctx, cmd).Error(); err != nil {
			return attempt("forget producers", err)
		}
	}
	return nil
}

// forgetSometimes forgets idle producers, once an hour.
func (l *log) forgetSometimes(ctx context.Context) error {
	l.claim()
	defer l.release()
	now := l.clock.now(l.store.now())
	if now-l.forgot < time.Hour.Milliseconds() {
		return nil
	}
	l.forgot = now
	return l.forgetIdle(ctx, now)
}

// Producers implements store.Log. The state is kept with every append, so that
// nothing must be read to complete it.
func (l *log) Producers(context.Context) ([]store.Producer, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, 0, store.ErrClosed
	}
	var out []store.Producer
	for _, p := range l.producers {
		p.Batches = slices.Clone(p.Batches)
		out = append(out, p.Producer)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out, l.tail.next, nil
}

// SaveProducers implements store.Log. There is nothing to save; it only says
// whether this handle owns the log.
func (l *log) SaveProducers(ctx context.Context, _ []store.Producer, _ int64) error {
	_, err := l.own(ctx, "check", checkScript)
	return err
}
