package txn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
)

// The journal tells what happens to a transactional id against the will of its
// producer: commits and aborts are not in it. These are its bounds; whoever comes
// again and again fills no more of it than that.
const (
	maxNoted    = 20 // entries of an id
	notedWithin = time.Minute
	maxRefused  = 8    // producers that were refused, of an id, until it is given to someone again
	maxExpired  = 1000 // ids that expire at a time
	maxNamed    = 20   // partitions by name
	maxText     = 255  // characters of an id, or of what a client calls itself
)

// adminClient is how the names of Java's admin clients begin. What they take they
// mean to fence (Admin.fenceProducers).
const adminClient = "adminclient-"

// notes are what was told of a transactional id lately.
type notes struct {
	since    time.Time
	count    int // since then
	left     int // that were left out since the last one
	refused  []pair
	refusals int // since the id was given to someone
}

// taker is who has had the transaction of another aborted, and was told to try again.
type taker struct{ clientID, host string }

// takes says what InitProducerId of a client without a producer means.
func takes(q *question, m *kmsg.InitProducerIDRequest) journal.TxnKind {
	if journal.IsOperator(&m.UnknownTags) || strings.HasPrefix(q.clientID, adminClient) {
		return journal.TxnOperator
	}
	return journal.TxnFenced
}

// noteFenced tells that a transaction is about to be aborted with a higher epoch. An
// empty kind is that of a producer which gives up its own.
func (x *step) noteFenced(t *txn, q *question, kind journal.TxnKind, now pair) {
	if kind == "" {
		return
	}
	e := x.entry(t, kind, t.hard.Producer, &now)
	if q != nil {
		e.By = holder(q.clientID, q.host)
		t.taker = &taker{q.clientID, q.host}
	}
	e.Open = max(x.now.Sub(time.UnixMilli(t.hard.Start)), 0)
	e.Partitions, e.PartitionN = named(t.hard.Topics)
	x.note(t, e)
}

// noteTaken tells that a client takes an id while no transaction is open, if that is
// someone else than who has it. A producer that starts again is nothing to tell of, nor
// one that has fenced the other already, or that comes after an operator.
func (x *step) noteTaken(t *txn, q *question, kind journal.TxnKind, now pair) {
	by := taker{q.clientID, q.host}
	known := !t.operators && (t.clientID != "" || t.host != "")
	if t.taker != nil && *t.taker == by || kind != journal.TxnOperator && (!known || by == taker{t.clientID, t.host}) {
		return
	}
	e := x.entry(t, kind, t.hard.Producer, &now)
	e.By = holder(q.clientID, q.host)
	x.note(t, e)
}

// noteRefused tells that someone came with a producer that the id has no longer: once,
// however often it comes, and not of ever new ones that someone makes up.
func (x *step) noteRefused(t *txn, q *question, asks pair) {
	now := t.hard.told()
	if asks.id < 0 || asks == now {
		return
	}
	n := t.noted()
	if n.refusals == maxRefused || slices.Contains(n.refused, asks) {
		return
	}
	n.refusals++
	n.refused = append(n.refused[max(len(n.refused)-maxRefused+1, 0):], asks)
	e := x.entry(t, journal.TxnRefused, asks, &now)
	if t.taker != nil {
		e.Holder = holder(t.taker.clientID, t.taker.host) // Who will be given it.
	}
	if q.batch == nil { // Else a broker asks, on behalf of who knows whom.
		e.By = holder(q.clientID, q.host)
	}
	e.Request = kmsg.NameForKey(q.msg.Key())
	x.note(t, e)
}

// noteExpired tells that an id is about to be removed.
func (x *step) noteExpired(t *txn) {
	e := x.entry(t, journal.TxnExpired, t.hard.Producer, nil)
	e.Idle = max(x.now.Sub(time.UnixMilli(t.hard.Updated)), 0)
	x.note(t, e)
}

func (t *txn) noted() *notes {
	if t.notes == nil {
		t.notes = &notes{}
	}
	return t.notes
}

// note has an entry written, unless there were too many lately.
func (x *step) note(t *txn, e journal.Txn) {
	n := t.noted()
	if ago := x.now.Sub(n.since); ago >= notedWithin || ago < 0 {
		n.since, n.count = x.now, 0
	}
	if n.count == maxNoted {
		n.left++
		return
	}
	n.count++
	e.LeftOut, n.left = n.left, 0
	x.out.Notes = append(x.out.Notes, &e)
}

func (x *step) entry(t *txn, kind journal.TxnKind, was pair, now *pair) journal.Txn {
	e := journal.Txn{
		Key: t.id, Time: x.now, ID: firstCharacters(t.id, maxText), Kind: kind,
		Was: journal.Producer{ID: was.id, Epoch: was.epoch}, Holder: holder(t.clientID, t.host),
	}
	if now != nil {
		e.Now = &journal.Producer{ID: now.id, Epoch: now.epoch}
	}
	return e
}

// holder is a client as people know it, nil if no one does.
func holder(clientID, host string) *journal.Holder {
	if clientID == "" && host == "" {
		return nil
	}
	return &journal.Holder{ClientID: firstCharacters(clientID, maxText), Host: firstCharacters(strings.TrimPrefix(host, "/"), maxText)}
}

// named lists the first of a transaction's partitions, and counts all.
func named(topics []topic) (names []string, count int) {
	for _, t := range topics {
		for _, p := range t.partitions[:min(len(t.partitions), maxNamed-len(names))] {
			names = append(names, fmt.Sprintf("%s-%d", t.name, p))
		}
		count += len(t.partitions)
	}
	return names, count
}

func firstCharacters(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}
