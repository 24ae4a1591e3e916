package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/internal/store"
)

// producerExpiry is how long an idle producer is remembered at least. The
// partition may forget it earlier.
const producerExpiry = 7 * 24 * time.Hour

// producerArgs are the fields and values that a transaction writes into the
// hash of producers.
func (l *log) producerArgs(tx *transaction) []string {
	now := l.clock.now(l.store.now())
	var args []string
	for id, p := range tx.producers {
		args = append(args, decimal(id), formatProducer(p, now))
	}
	return args
}

// formatProducer writes the state of a producer as
//
//	<when, ms> <producer epoch> <last timestamp>;<base sequence> <last sequence> <base offset> <last offset> <timestamp>;…
//
// with the oldest batch first.
func formatProducer(p store.Producer, now int64) string {
	b := fmt.Appendf(nil, "%d %d %d", now, p.Epoch, p.LastTimestamp)
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
func parseProducer(id, text string) (p store.Producer, when int64, err error) {
	bad := fmt.Errorf("%w: producer %q is %q", store.ErrCorrupt, id, text)
	if p.ID, err = strconv.ParseInt(id, 10, 64); err != nil {
		return p, 0, bad
	}
	head, rest, more := strings.Cut(text, ";")
	n, ok := numbers(head, 3)
	if !ok {
		return p, 0, bad
	}
	p.Epoch, p.LastTimestamp = int16(n[1]), n[2]
	for more {
		var one string
		one, rest, more = strings.Cut(rest, ";")
		x, ok := numbers(one, 5)
		if !ok {
			return p, 0, bad
		}
		p.Batches = append(p.Batches, store.ProducerBatch{
			BaseSequence: int32(x[0]), LastSequence: int32(x[1]), BaseOffset: x[2], LastOffset: x[3], Timestamp: x[4],
		})
	}
	return p, n[0], nil
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
	l.producers = make(map[int64]store.Producer, len(states))
	var idle []string
	for id, text := range states {
		p, when, err := parseProducer(id, text)
		if err != nil {
			return err
		}
		if when < now-producerExpiry.Milliseconds() {
			idle = append(idle, id)
			continue
		}
		l.producers[p.ID] = p
	}
	for part := range slices.Chunk(idle, 1000) {
		cmd := l.store.eval(forgetScript, []string{l.keys.stream, l.keys.meta, l.keys.producers}, append([]string{l.owner}, part...))
		if err := l.store.do(ctx, cmd).Error(); err != nil {
			return attempt("forget producers", err)
		}
	}
	return nil
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
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b store.Producer) int { return int(min(max(a.ID-b.ID, -1), 1)) })
	return out, l.tail.next, nil
}

// SaveProducers implements store.Log. There is nothing to save; it only says
// whether this handle owns the log.
func (l *log) SaveProducers(ctx context.Context, _ []store.Producer, _ int64) error {
	_, err := l.own(ctx, "check", checkScript)
	return err
}
