package broker

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/audit/trail"
	"muster/internal/coordinator"
	"muster/internal/gate"
	"muster/internal/handler"
	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/watch/writer"
)

var groupJournal = writer.Kind[journal.Entry]{
	Topic: metadata.JournalTopic, Name: "group journal",
	Key: func(e *journal.Entry) string { return e.Group }, At: func(e *journal.Entry) time.Time { return e.Time }, Size: (*journal.Entry).Size,
}

var transactionJournal = writer.Kind[journal.Txn]{
	Topic: metadata.TransactionJournalTopic, Name: "transaction journal", Anywhere: true,
	Key: func(e *journal.Txn) string { return e.Key }, At: func(e *journal.Txn) time.Time { return e.Time }, Size: (*journal.Txn).Size,
}

func newJournal[E any](b *Broker, kind writer.Kind[E]) *writer.Journal[E] {
	return writer.New(b.writerOptions(), kind)
}

// openAudit makes the audit log, if there is to be one.
func (b *Broker) openAudit() {
	if !b.cfg.Bool("muster.audit.enable") {
		return
	}
	b.audit = trail.New(trail.Options{Writer: b.writerOptions(), Node: b.nodeID})
	for _, g := range b.gates.All() {
		g.OnLogin(func(l gate.Attempt) { b.audit.Login(l.Principal, l.Host, l.Mechanism, l.Err) })
	}
}

func (b *Broker) writerOptions() writer.Options {
	return writer.Options{
		Topic:       func(name string) *metadata.Topic { return b.controller.Image().Topic(name) },
		CreateTopic: b.createInternal, Partition: b.partition,
		Dropped: func(n int) { b.meters.JournalDropped.Add(uint64(n)) }, Logger: b.logger,
	}
}

// createInternal creates an internal topic; that there is one already is no error.
func (b *Broker) createInternal(ctx context.Context, name string) error {
	_, errs := b.controller.CreateTopics(ctx, []metadata.NewTopic{{Name: name}}, false)
	if errors.Is(errs[0], kerr.TopicAlreadyExists) {
		return nil
	}
	return errs[0]
}

// What happens to a transaction outside of its coordinator is keyed by its producer id
// in the journal: its transactional id is not known there.

// maxMarked is how many markers of operators the journal tells of in a minute.
const maxMarked = 100

// marked tells the journal of markers that operators write to partitions.
type marked struct {
	tell func([]journal.Txn)

	mu    sync.Mutex
	since time.Time
	count int // since then
	left  int // left out since the last one
}

func (m *marked) add(from coordinator.Client, x handler.Marked) { m.addAt(time.Now(), from, x) }

func (m *marked) addAt(now time.Time, from coordinator.Client, x handler.Marked) {
	left, ok := m.allow(now)
	if !ok {
		return
	}
	m.tell([]journal.Txn{{
		Key: strconv.FormatInt(x.ProducerID, 10), Time: now, Kind: journal.TxnMarked, Committed: x.Commit,
		Was: journal.Producer{ID: x.ProducerID, Epoch: x.ProducerEpoch}, LeftOut: left,
		By:         &journal.Holder{ClientID: from.ID[:min(len(from.ID), 255)], Host: strings.TrimPrefix(from.Host, "/")},
		Partitions: x.Partitions, PartitionN: x.Count,
	}})
}

// allow says whether there is room for another entry, and how many were left out
// before it.
func (m *marked) allow(now time.Time) (left int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ago := now.Sub(m.since); ago >= time.Minute || ago < 0 {
		m.since, m.count = now, 0
	}
	if m.count == maxMarked {
		m.left++
		return 0, false
	}
	m.count++
	left, m.left = m.left, 0
	return left, true
}
