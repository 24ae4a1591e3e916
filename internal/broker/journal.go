package broker

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/audit/trail"
	"muster/internal/gate"
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
