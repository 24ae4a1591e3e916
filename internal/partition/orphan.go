package partition

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// OpenTxn is a transaction that is open in a partition.
type OpenTxn struct {
	ProducerID       int64
	ProducerEpoch    int16
	CoordinatorEpoch int32 // of the producer's last marker, -1 if there was none
	FirstOffset      int64
	Start            int64     // when it began, in milliseconds; NoStart if no one told
	Since            time.Time // when this broker came to know of it
	LastTimestamp    int64     // when the producer last appended, in milliseconds
}

// OpenTxns returns the transactions that are open, the earliest first. Those whose
// first record is under way are not among them.
func (p *Partition) OpenTxns() []OpenTxn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.showing.Lock()
	defer p.showing.Unlock()
	var out []OpenTxn
	for e := p.stable.all.Front(); e != nil; e = e.Next() {
		t := e.Value.(*txn)
		x := p.producers[t.producer]
		if x == nil || x.TxnFirst != t.first {
			continue // Its marker is stored, or under way.
		}
		out = append(out, OpenTxn{
			ProducerID: t.producer, ProducerEpoch: x.Epoch, CoordinatorEpoch: x.CoordinatorEpoch,
			FirstOffset: t.first, Start: t.start, Since: t.since, LastTimestamp: x.LastTimestamp,
		})
	}
	return out
}

// AbortOrphan aborts a transaction that no coordinator knows, if it is still open,
// and calls done when that is durable. The producer's next transaction has another
// first offset, and is left alone.
func (p *Partition) AbortOrphan(ctx context.Context, o OpenTxn, done func(*kerr.Error)) {
	m := Marker{ProducerID: o.ProducerID, ProducerEpoch: o.ProducerEpoch, CoordinatorEpoch: max(o.CoordinatorEpoch, 0), Start: o.Start}
	p.putMarker(ctx, terms{marker: &m, orphan: &o}, done)
}
