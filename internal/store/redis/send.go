package redis

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/store"
)

type results = []rueidis.RedisResult

// errTryAgain says that a transaction was refused, but will not be if it is
// sent again.
var errTryAgain = errors.New("refused for now")

// launch sends a transaction. One without appends is done at once, but not
// before its turn.
func (l *log) launch(tx *transaction) {
	if tx.entries == 0 {
		close(tx.done)
		return
	}
	cmds := l.layout.commands(tx)
	generation := l.store.runs.Enter()
	if generation != l.generation {
		l.store.runs.Leave(generation)
		tx.err = errRestarted
		close(tx.done)
		return
	}
	ctx, cancel := l.store.bounded(context.Background())
	q := &queued{Context: ctx, in: make(chan struct{})}
	go func() {
		defer cancel()
		tx.results = l.store.client.DoMulti(q, cmds...)
		// Not before: to be in the queue may mean that a connection is being made.
		l.store.runs.Leave(generation)
		close(tx.done)
	}()
	select {
	case <-q.in:
	case <-tx.done:
	}
}

// queued is a context that says when a command is in the client's queue. What
// is queued after it is then sent after it. The client asks for the channel of
// a context when it begins to wait; should it one day ask earlier, transactions
// may overtake each other, which costs time but does no harm.
type queued struct {
	context.Context
	once sync.Once
	in   chan struct{}
}

// Done implements context.Context.
func (q *queued) Done() <-chan struct{} {
	q.once.Do(func() { close(q.in) })
	return q.Context.Done()
}

// maxConflicts bounds how often a group is sent. Every conflict doubles the
// distance to others, so that many in a row mean something else.
const maxConflicts = 30

// sendAgain sends a group that was refused, until it is not.
func (l *log) sendAgain(tx *transaction) error {
	for range maxConflicts {
		again, err := l.compose(tx.group, nil)
		if err != nil {
			return err
		}
		l.launch(again)
		<-again.done
		if err = l.outcome(again); !errors.Is(err, errTryAgain) {
			*tx = *again
			return err
		}
	}
	return fmt.Errorf("%w: append %s: others append all the time", store.ErrStorage, l.keys.stream)
}

// outcome reads what became of a transaction.
func (l *log) outcome(tx *transaction) error {
	if tx.err != nil || tx.entries == 0 {
		return tx.err
	}
	what := "append " + l.keys.stream
	r, err := executed(tx.results)
	tx.results = nil
	if err != nil {
		return attempt(what, err)
	}
	if len(r) != tx.adds+3 {
		return fmt.Errorf("%w: %s: %d replies", store.ErrStorage, what, len(r))
	}
	for _, p := range tx.group {
		p.answered = p.sends()
	}
	script := reply{r[1]}
	if err := script.m.Error(); err != nil {
		if e, ok := rueidis.IsRedisErr(err); ok && e.IsNoScript() {
			l.taught = false
			return errTryAgain
		}
		return attempt(what, err)
	}
	if s := script.list(); len(s) >= 3 {
		l.clock = clock{server: serverMillis(s[1], s[2]), local: l.store.now()}
	}
	return l.layout.accepted(tx, script, r[2:len(r)-1])
}

// accepted reads whether the script has taken the transaction.
func (l *log) accepted(tx *transaction, script reply, added []rueidis.RedisMessage) error {
	what, s := "append "+l.keys.stream, script.list()
	if script.m.IsInt64() || len(s) == 3 {
		return wantAdded(what, added)
	}
	if len(s) != 6 {
		return fmt.Errorf("%w: %s: reply of %d values", store.ErrStorage, what, len(s))
	}
	return l.refused(what, tx, s[3].text(), s[4].text(), s[5].text())
}

// refused says why a transaction was refused: by the token that the log has,
// the last id of its stream, and what Redis said.
func (l *log) refused(what string, tx *transaction, token, lastID, why string) error {
	if token != l.token(tx.from.counter) {
		if at, err := parseToken(token); err == nil && strings.HasPrefix(token, l.owner) && at[2] >= tx.acked {
			return errTryAgain // What it builds upon has not arrived.
		}
		return l.refusal(token)
	}
	last, err := parseID(lastID)
	if err != nil {
		return fmt.Errorf("%w: %s: the stream is gone", store.ErrStorage, what)
	}
	if !tx.before.less(last) {
		return fmt.Errorf("%w: %s: %s", store.ErrStorage, what, why)
	}
	return l.numbered.overtaken(what, last)
}

// wantAdded makes sure that what is written down to be added was. It cannot
// fail, unless a server does what no server that we know does.
func wantAdded(what string, added []rueidis.RedisMessage) error {
	for i := range added {
		if _, err := added[i].ToString(); err != nil {
			return fmt.Errorf("%w: %s: a record was refused: %w", store.ErrCorrupt, what, err)
		}
	}
	return nil
}

func (l *log) token(counter int64) string { return l.owner + decimal(counter) }

// commands makes the commands of a transaction.
func (l *log) commands(tx *transaction) []rueidis.Completed {
	b, k := l.store.client.B(), l.keys
	meta, adds := l.metaArgs(tx), l.numbered.adds(tx)
	inScript, words := l.numbered.inScript(adds)
	aborted := abortedArgs(tx)
	args := []string{l.token(tx.from.counter), tx.before.String(), l.wantTime(), strconv.Itoa(len(meta)), words, strconv.Itoa(len(aborted))}
	args = slices.Concat(args, meta, inScript, aborted, producerArgs(tx))
	cmds := l.guarded(len(adds), appendScript, []string{k.stream, k.meta, k.producers, k.held, k.aborted}, args)
	if len(inScript) > 0 {
		adds = adds[1:]
	}
	tx.adds = len(adds)
	for _, a := range adds {
		cmds = append(cmds, b.Arbitrary("XADD").Keys(k.stream).Args("NOMKSTREAM", a.id).Args(a.words...).Build())
	}
	return append(cmds, b.Renamenx().Key(k.held).Newkey(k.stream).Build(), b.Exec().Build())
}

// guarded begins the transaction of an append: the stream is moved away, and a script
// decides whether it comes back before the data is added.
func (l *log) guarded(adds int, s script, keys, args []string) []rueidis.Completed {
	b := l.store.client.B()
	cmds := make([]rueidis.Completed, 0, adds+5)
	// However large it is, it must not take another connection than the others.
	cmds = append(cmds, b.Multi().Build().ToPipe(), b.Rename().Key(l.keys.stream).Newkey(l.keys.held).Build())
	if !l.taught {
		l.taught = true
		return append(cmds, l.store.eval(s.text, keys, args))
	}
	return append(cmds, b.Evalsha().Sha1(s.hash).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
}

// script is a script that servers are told once, and know by its hash from then on.
type script struct{ text, hash string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// add is one XADD.
type add struct {
	id    string
	words entry
}

// clockAge is after how long the server is asked for the time again.
const clockAge = 10 * time.Second

func (l *log) wantTime() string {
	if !l.layout.usesClock() || l.store.now().Sub(l.clock.local) < clockAge {
		return ""
	}
	return "1"
}

// metaArgs are the fields and values that a transaction writes into the meta
// hash.
func (l *log) metaArgs(tx *transaction) []string {
	to := &tx.to
	args := []string{"n", l.token(to.counter), "end", l.layout.position(to.next), "size", decimal(to.size), "count", decimal(to.count)}
	if to.maxTimestamp != tx.from.maxTimestamp {
		args = append(args, "maxts", decimal(to.maxTimestamp))
	}
	if to.ahead != tx.from.ahead {
		args = append(args, "ahead", decimal(to.ahead))
	}
	return append(args, rareArgs(tx)...)
}

// rareArgs are those that seldom change.
func rareArgs(tx *transaction) (args []string) {
	if !slices.Equal(tx.to.epochs, tx.from.epochs) {
		args = append(args, "epochs", formatEpochs(tx.to.epochs))
	}
	if tx.to.largest != tx.from.largest {
		args = append(args, "largest", decimal(tx.to.largest))
	}
	return args
}

// commit takes a transaction that Redis has executed into the handle. What was
// trimmed meanwhile is gone from the size, and what others appended since is in
// the log end offset if someone looked.
func (l *log) commit(tx *transaction) {
	if tx.entries == 0 {
		return
	}
	l.pace.success()
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.tail
	l.tail = tx.to
	l.tail.size += before.size - tx.from.size
	l.tail.count += before.count - tx.from.count
	l.tail.next = max(l.tail.next, before.next)
	for id, p := range tx.producers {
		l.producers[id] = p
	}
	l.aborted.Add(tx.aborted...)
	tx.prev, tx.producers = nil, nil
}
