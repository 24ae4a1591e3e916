package exact

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/record"
	"muster/internal/sim/seeds"
	"muster/internal/store"
	"muster/internal/txn"
)

// txnConfig is the settings of transaction coordinators.
func (w *world) txnConfig() txn.Config {
	cfg := txn.DefaultConfig()
	cfg.SweepInterval = w.plan.sweep
	cfg.MaxTimeout = maxTimeout
	if e := &w.plan.expiry; e.ids > 0 {
		cfg.IDExpiration, cfg.ExpireInterval = e.ids, e.sweep
	}
	return cfg
}

// maxTimeout is the longest that a transaction may take.
const maxTimeout = 15 * time.Second

// prefill writes what is there before the run begins: transactional ids whose
// producer epochs have nearly come to their end, after which a new producer id
// must be taken.
func (w *world) prefill() {
	for i, p := range w.plan.copiers {
		if !p.worn {
			continue
		}
		id := fmt.Sprintf("copier-%d", i)
		k := kmsg.NewTxnMetadataKey()
		k.TransactionalID = id
		v := kmsg.NewTxnMetadataValue()
		v.Version, v.ProducerID, v.ProducerEpoch, v.TimeoutMillis = 1, int64(500+i), int16(32755+w.Rand.IntN(12)), 1000
		v.LastUpdateTimestamp, v.StartTimestamp = seeds.Start.UnixMilli(), -1
		b, err := record.Build(record.PlainTemplate(), []record.Record{{Key: k.AppendTo(nil), Value: v.AppendTo(nil), Timestamp: seeds.Start.UnixMilli()}})
		if err != nil {
			panic(err)
		}
		l := w.store.log(store.TopicPartition{Topic: stateTopic, Partition: journal.PartitionFor(id, w.plan.states)})
		h, err := l.st.Open(context.Background(), l.tp, 0, store.LogConfig{})
		if err == nil {
			_, err = h.Append(context.Background(), b)
		}
		if err != nil {
			panic(err)
		}
		l.keep(b, noStart)
		l.sync(l.end())
	}
}
