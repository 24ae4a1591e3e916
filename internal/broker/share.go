package broker

import (
	"context"
	"sync"

	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/share/state"
)

// shareStateConfig is the settings of the share coordinator. They are fixed at the start.
func (b *Broker) shareStateConfig() state.Config {
	return state.Config{
		Updates:  int(b.cfg.Int("share.coordinator.snapshot.update.records.per.snapshot")),
		Idle:     b.cfg.Duration("share.coordinator.cold.partition.snapshot.interval.ms"),
		Prune:    b.cfg.Duration("share.coordinator.state.topic.prune.interval.ms"),
		MaxBytes: state.DefaultConfig().MaxBytes,
	}
}

// pruning deletes the beginnings of partitions of __share_group_state that no share partition
// needs, beside those who write there.
type pruning struct {
	mu   sync.Mutex
	due  map[int32]prune
	wake chan struct{}
}

// prune is up to where a partition is to be deleted, by its leader of an epoch.
type prune struct {
	before int64
	epoch  int32
}

func newPruning() *pruning { return &pruning{due: map[int32]prune{}, wake: make(chan struct{}, 1)} }

// add has a partition pruned soon. It does not block.
func (p *pruning) add(shard int32, what prune) {
	p.mu.Lock()
	p.due[shard] = what
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pruning) take() map[int32]prune {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := p.due
	p.due = map[int32]prune{}
	return due
}

// shareStateNotes has the log begin where the core of a shard says.
func (b *Broker) shareStateNotes(shard int32, notes []machine.Note) {
	for _, n := range machine.NotesOf[state.Prune](notes) {
		if p := b.manager.Get(metadata.ShareStateTopic, shard); p != nil {
			b.pruning.add(shard, prune{n.Before, p.LeaderEpoch()})
		}
	}
}

// pruneShareStates deletes until ctx ends. What fails is done by the next that is told, which
// deletes more.
func (b *Broker) pruneShareStates(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.pruning.wake:
		}
		for shard, what := range b.pruning.take() {
			p := b.manager.Get(metadata.ShareStateTopic, shard)
			if p == nil || p.LeaderEpoch() != what.epoch {
				continue // Its next leader knows better.
			}
			if _, err := p.DeleteBefore(ctx, what.before); err != nil {
				b.logger.Debug("records of share groups that no one needs could not be deleted", "partition", shard, "error", err)
			}
		}
	}
}
