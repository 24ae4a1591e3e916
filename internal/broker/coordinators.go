package broker

import (
	"slices"

	"muster/internal/coordinator"
	"muster/internal/group"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/share/state"
	"muster/internal/store"
	"muster/internal/txn"
	"muster/internal/txn/orphans"
)

// coordinated is a row of the table of coordinators: a core, and what it needs of the
// broker.
type coordinated struct {
	*coordinator.Coordinator
	topic string // whose partitions are its shards
	core  machine.Definition
	notes func(shard int32, notes []machine.Note)
	// configured returns the event that tells the core of its new settings, nil if a change
	// of the metadata is not about them.
	configured func(before, after *metadata.Image) machine.Event
}

// openCoordinators makes the coordinators. Their shards start when there is a topic for
// them.
func (b *Broker) openCoordinators() {
	b.journal, b.txnJournal = newJournal(b, groupJournal), newJournal(b, transactionJournal)
	b.marked.tell = b.txnJournal.Add
	b.pruning = newPruning()
	b.groupConfig.Store(groupConfig(b.cfg, nil))
	b.transactionConfig.Store(transactionConfig(b.cfg))
	b.coordinators = []*coordinated{
		{
			topic: metadata.OffsetsTopic, core: group.Definition(func() group.Config { return *b.groupConfig.Load() }),
			notes: b.groupNotes, configured: b.configureGroups,
		},
		{
			topic: metadata.TransactionsTopic, core: txn.Definition(func() txn.Config { return *b.transactionConfig.Load() }),
			notes: b.transactionNotes, configured: b.configureTransactions,
		},
		{
			topic: metadata.ShareStateTopic, core: state.Definition(b.shareStateConfig),
			notes: b.shareStateNotes, configured: func(_, _ *metadata.Image) machine.Event { return nil },
		},
	}
	for _, c := range b.coordinators {
		c.Coordinator = b.coordinate(c)
	}
	b.groups = b.coordinatorOf(metadata.OffsetsTopic)
	b.openShares()
	b.orphans = orphans.New(orphans.Options{
		Every: b.cfg.Duration("muster.transaction.orphan.check.interval.ms"), Node: b.nodeID, Image: b.image, Logger: b.logger,
		Partition: b.partition, Ask: b.ask, Tell: b.txnJournal.Add,
	})
}

// coordinatorOf returns the coordinator whose shards are the partitions of a topic.
func (b *Broker) coordinatorOf(topic string) *coordinator.Coordinator {
	i := slices.IndexFunc(b.coordinators, func(c *coordinated) bool { return c.topic == topic })
	return b.coordinators[i].Coordinator
}

// groupNotes passes on what the core of groups tells. Like the others that a coordinator
// tells, it must not block.
func (b *Broker) groupNotes(_ int32, notes []machine.Note) {
	var entries []journal.Entry
	for _, n := range notes {
		switch n := n.(type) {
		case *journal.Entry:
			entries = append(entries, *n)
		case group.Committed:
			b.committed(n)
		}
	}
	if len(entries) > 0 {
		b.tellOfGroups(entries)
	}
}

// committed passes on what the end of a transaction has committed.
func (b *Broker) committed(offsets group.Committed) {
	if b.redis == nil || b.redis.native == nil {
		return
	}
	for _, o := range offsets {
		b.redis.native.Committed(o.Group, store.TopicPartition{Topic: o.Topic, Partition: o.Partition}, o.Offset)
	}
}

func (b *Broker) transactionNotes(_ int32, notes []machine.Note) {
	var entries []journal.Txn
	for _, n := range machine.NotesOf[*journal.Txn](notes) {
		entries = append(entries, *n)
	}
	if len(entries) > 0 {
		b.txnJournal.Add(entries)
	}
}

func (b *Broker) configureGroups(before, after *metadata.Image) machine.Event {
	if before.Config == after.Config && before.GroupSettings == after.GroupSettings {
		return nil
	}
	cfg := groupConfig(after.Config, after.GroupSettings)
	b.groupConfig.Store(cfg)
	return group.Configured{Config: *cfg}
}

func (b *Broker) configureTransactions(before, after *metadata.Image) machine.Event {
	if before.Config == after.Config {
		return nil
	}
	cfg := transactionConfig(after.Config)
	b.transactionConfig.Store(cfg)
	return txn.Configured{Config: *cfg}
}

func transactionConfig(c *config.Broker) *txn.Config {
	return &txn.Config{
		MaxTimeout:     c.Duration("transaction.max.timeout.ms"),
		SweepInterval:  c.Duration("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
		IDExpiration:   c.Duration("transactional.id.expiration.ms"),
		ExpireInterval: c.Duration("transaction.remove.expired.transaction.cleanup.interval.ms"),
	}
}
