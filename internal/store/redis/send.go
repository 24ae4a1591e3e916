package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// tail is what the sender knows about the end of the log.
type tail struct {
	counter int64 // appends so far, the last part of the token
	clock   clock
	pace    pace
	// maxTimestamp is the largest timestamp ever appended (log layout).
	maxTimestamp int64
	// ahead is how far, in ms, the timestamp of a record was ahead of its id at
	// most (stream layout). It bounds where a search by timestamp must begin.
	ahead int64
}

// pace keeps the sender ahead of others who append to the stream. What it
// chooses is too low if they were faster; then it takes a larger step.
type pace struct {
	conflicts int // of late
	calm      int // groups since the last
}

const maxPace = 10

func (p *pace) conflict() {
	p.conflicts, p.calm = min(p.conflicts+1, maxPace), 0
}

func (p *pace) success() {
	if p.calm++; p.calm >= 64 && p.conflicts > 0 {
		p.conflicts, p.calm = p.conflicts-1, 0
	}
}

// gap is how many offsets to leave to others, margin how many ms to be ahead.
func (p *pace) gap() int64 {
	if p.conflicts == 0 {
		return 0
	}
	return 16 << p.conflicts
}

func (p *pace) margin() int64 {
	if p.conflicts == 0 {
		return 0
	}
	return 1 << (p.conflicts - 1)
}

// errInTheWay says that somebody else's entry is where the next one belongs.
var errInTheWay = errors.New("an entry is in the way")

// maxConflicts bounds how often a group is sent. Every conflict doubles the
// distance to others, so that many in a row mean something else.
const maxConflicts = 30

// send appends a group of batches, all or none of them.
func (l *log) send(group []*pending) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	for range maxConflicts {
		tx, err := l.compose(group)
		if err != nil {
			return err
		}
		last, err := l.transact(tx)
		if err == nil {
			l.commit(tx)
			return nil
		}
		if !errors.Is(err, errInTheWay) || l.layout == store.LayoutLog {
			return err
		}
		l.tail.pace.conflict()
		l.mu.Lock()
		l.next = max(l.next, l.atOrAfter(last.after()))
		l.mu.Unlock()
	}
	return fmt.Errorf("%w: append %s: others append all the time", store.ErrStorage, l.keys.stream)
}

// transaction is a group with its offsets.
type transaction struct {
	group     []*pending
	first     entryID
	last      entryID
	entries   int64
	bytes     int64
	next      int64 // the log end offset after it
	newEpochs []store.EpochStart
	producers map[int64]store.Producer
	tail      tail
}

// compose gives offsets to a group.
func (l *log) compose(group []*pending) (*transaction, error) {
	tx := &transaction{group: group, tail: l.tail, producers: map[int64]store.Producer{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	var records int64
	for _, p := range group {
		records += int64(p.batch.LastOffsetDelta()) + 1
		tx.entries += int64(p.weight())
		tx.bytes += p.bytes
	}
	base, err := l.base(records)
	if err != nil {
		return nil, err
	}
	tx.newEpochs = l.withEpoch(base)
	tx.next = base
	for _, p := range group {
		p.base = tx.next
		p.batch.SetBaseOffset(p.base)
		p.batch.SetLeaderEpoch(l.epoch)
		tx.next = p.batch.LastOffset() + 1
		tx.tail.maxTimestamp = max(tx.tail.maxTimestamp, p.batch.MaxTimestamp())
		tx.tail.ahead = max(tx.tail.ahead, p.ahead-int64(l.id(p.base).ms))
		l.remember(tx, p.batch)
	}
	if l.layout == store.LayoutLog {
		tx.first, tx.last = entryID{ms: uint64(group[0].batch.LastOffset()) + 1}, entryID{ms: uint64(tx.next)}
	} else {
		tx.first, tx.last = l.id(base), l.id(tx.next-1)
	}
	tx.tail.counter++
	return tx, nil
}

// base chooses the offset for the next records. In the stream layout it is the
// server's time, or what follows the last offset if that is later. The last of
// them gets no sequence near the end of its millisecond, since the server goes
// on from there when others append in the same millisecond, and ids with a
// larger sequence have no offset. The lock is held.
func (l *log) base(records int64) (int64, error) {
	base := l.next
	if l.layout == store.LayoutStream {
		per := int64(l.perMilli())
		now := l.tail.clock.now(l.store.now()) + l.tail.pace.margin()
		base = max(now<<l.bits, base+l.tail.pace.gap())
		if last := (base + records - 1) & (per - 1); last >= per-per/4 {
			base += per - last
		}
	}
	if base < 0 || base > math.MaxInt64-records-1 {
		return 0, fmt.Errorf("%w: %s ends at offset %d, which leaves no room", store.ErrStorage, l.keys.stream, l.next)
	}
	return base, nil
}

// withEpoch returns the epochs after an append at base, or nil if they stay.
// The lock is held.
func (l *log) withEpoch(base int64) []store.EpochStart {
	n := len(l.epochs)
	if n > 0 && l.epochs[n-1].Epoch >= l.epoch {
		return nil
	}
	if n > 0 && l.epochs[n-1].Start == base {
		n-- // All records of that epoch were trimmed.
	}
	return append(l.epochs[:n:n], store.EpochStart{Epoch: l.epoch, Start: base})
}

func (l *log) token(counter int64) string { return l.owner + decimal(counter) }

// transact sends a transaction and reads its outcome. If an entry is in the
// way it returns the last id of the stream.
func (l *log) transact(tx *transaction) (entryID, error) {
	results := l.store.doMulti(context.Background(), l.commands(tx)...)
	what := "append " + l.keys.stream
	r, err := executed(results)
	if err != nil {
		return entryID{}, attempt(what, err)
	}
	if len(r) != len(results)-2 {
		return entryID{}, fmt.Errorf("%w: %s: %d replies", store.ErrStorage, what, len(r))
	}
	seal := r[len(r)-1]
	if err := seal.m.Error(); err != nil {
		return entryID{}, attempt(what, err)
	}
	s := seal.list()
	if len(s) >= 3 {
		tx.tail.clock = clock{server: serverMillis(s[1], s[2]), local: l.store.now()}
		l.tail.clock = tx.tail.clock
	}
	if len(s) > 0 && s[0].text() == "ok" {
		return entryID{}, nil
	}
	if len(s) != 6 {
		return entryID{}, fmt.Errorf("%w: %s: reply of %d values", store.ErrStorage, what, len(s))
	}
	if token := s[3].text(); token != l.token(l.tail.counter) {
		return entryID{}, l.refusal(token)
	}
	return l.whyNot(what, r, s)
}

// whyNot explains why a transaction with the right token was not done.
func (l *log) whyNot(what string, r, s []reply) (entryID, error) {
	if s[0].text() == "producers" {
		return entryID{}, fmt.Errorf("%w: %s: %s: %s", store.ErrStorage, what, l.keys.producers, s[5].text())
	}
	last, err := parseID(s[4].text())
	if err != nil {
		return last, fmt.Errorf("%w: %s: the stream is gone", store.ErrStorage, what)
	}
	for _, add := range r[1 : len(r)-1] {
		if err := add.m.Error(); s[0].text() == "short" && err != nil && !isSmallID(err) {
			return last, attempt(what, err)
		}
	}
	return last, fmt.Errorf("%w: %w: %s: %s, which this broker did not write", store.ErrStorage, errInTheWay, what, last)
}

// isSmallID says whether XADD was refused because of the id.
func isSmallID(err error) bool {
	reply, ok := rueidis.IsRedisErr(err)
	return ok && (strings.Contains(reply.Error(), "equal or smaller") || strings.Contains(reply.Error(), "exhausted"))
}

// commands makes the commands of a transaction.
func (l *log) commands(tx *transaction) []rueidis.Completed {
	b := l.store.client.B()
	cmds := make([]rueidis.Completed, 0, tx.entries+4)
	before, after := l.token(l.tail.counter), l.token(tx.tail.counter)
	cmds = append(cmds, b.Multi().Build(),
		l.store.eval(guardScript, []string{l.keys.stream, l.keys.meta}, []string{before, tx.first.before().String()}))
	runningMax := l.tail.maxTimestamp
	for _, p := range tx.group {
		if l.layout == store.LayoutLog {
			runningMax = max(runningMax, p.batch.MaxTimestamp())
			id := entryID{ms: uint64(p.batch.LastOffset()) + 1}
			cmds = append(cmds, b.Xadd().Key(l.keys.stream).Nomkstream().Id(id.String()).FieldValue().
				FieldValue(fieldBatch, rueidis.BinaryString(p.batch)).FieldValue(fieldRunningMax, decimal(runningMax)).Build())
			continue
		}
		for i, e := range p.entries {
			cmds = append(cmds, b.Arbitrary("XADD").Keys(l.keys.stream).Args("NOMKSTREAM", l.id(p.base+int64(i)).String()).Args(e...).Build())
		}
	}
	meta := []string{"end", l.position(tx.next)}
	if tx.newEpochs != nil {
		meta = append(meta, "epochs", formatEpochs(tx.newEpochs))
	}
	if tx.tail.maxTimestamp != l.tail.maxTimestamp {
		meta = append(meta, "maxts", decimal(tx.tail.maxTimestamp))
	}
	if tx.tail.ahead != l.tail.ahead {
		meta = append(meta, "ahead", decimal(tx.tail.ahead))
	}
	args := []string{before, after, decimal(tx.entries), tx.first.String(), tx.last.String(), decimal(tx.bytes), strconv.Itoa(len(meta))}
	args = append(append(args, meta...), l.producerArgs(tx)...)
	return append(cmds, l.store.eval(sealScript, []string{l.keys.stream, l.keys.meta, l.keys.producers}, args), b.Exec().Build())
}

// commit takes a transaction that Redis has executed into the handle.
func (l *log) commit(tx *transaction) {
	l.tail = tx.tail
	l.tail.pace.success()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next, l.acked = tx.next, tx.tail.counter
	l.maxTimestamp, l.ahead = tx.tail.maxTimestamp, tx.tail.ahead
	l.size += tx.bytes
	l.count += tx.entries
	if tx.newEpochs != nil {
		l.epochs = tx.newEpochs
	}
	for id, p := range tx.producers {
		l.producers[id] = p
	}
}

// remember takes a batch of an idempotent producer into the state that goes
// along with it. The lock is held.
func (l *log) remember(tx *transaction, b record.Batch) {
	if b.ProducerID() < 0 || b.Control() {
		return
	}
	p, ok := tx.producers[b.ProducerID()]
	if !ok {
		p = l.producers[b.ProducerID()]
	}
	tx.producers[b.ProducerID()] = noteBatch(p, b)
}
