package txn

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

const (
	// markerBackoff is how long it takes to send a marker again that was not
	// written, at first. It doubles up to maxMarkerBackoff, for ever.
	markerBackoff    = 50 * time.Millisecond
	maxMarkerBackoff = 2 * time.Second
	// markerPatience is after how long a send is given up that has no outcome. The
	// runtime gives up sooner.
	markerPatience = 30 * time.Second
	// markersVersion is that of WriteTxnMarkers with the version of transactions.
	markersVersion = 2
)

// ending is a transaction that is decided, and whose markers are not all written.
type ending struct {
	left    []*marker // in order
	retry   time.Time // when those are sent again that were not written; zero if there are none
	backoff time.Duration
	timer   uint64

	waiting   []question // for the end, in the order in which they came
	waitTimer uint64     // 0 if none is armed
}

// marker is a partition that needs one.
type marker struct {
	topic     string
	partition int32
	send      uint64 // that it is part of, 0 if none is under way
	since     time.Time
	done      bool
}

// markerSend is markers under way to one broker.
type markerSend struct {
	id      string
	markers []*marker
}

func markersKey(t *txn) machine.TimerKey { return machine.TimerKey{Kind: TimerMarkers, ID: t.id} }

// sendMarkers has the end of a transaction written to all its partitions.
func (x *step) sendMarkers(t *txn) {
	n := 0
	for _, topic := range t.hard.Topics {
		n += len(topic.partitions)
	}
	all := make([]marker, 0, n)
	t.ending = &ending{backoff: markerBackoff, left: make([]*marker, 0, n)}
	for _, topic := range t.hard.Topics {
		for _, p := range topic.partitions {
			all = append(all, marker{topic: topic.name, partition: p})
			t.ending.left = append(t.ending.left, &all[len(all)-1])
		}
	}
	x.dispatch(t)
}

// dispatch sends the markers that are not under way, to the leaders that there are
// now. A partition that is gone needs none.
func (x *step) dispatch(t *txn) {
	e := t.ending
	e.retry = time.Time{}
	byLeader := map[int32][]*marker{}
	var leaders []int32
	for _, m := range e.left {
		if m.send != 0 && x.now.Before(m.since.Add(markerPatience)) {
			continue
		}
		leader, exists := x.leader(m)
		delete(x.sends, m.send)
		m.send, m.done = 0, !exists
		if leader < 0 {
			continue
		}
		if byLeader[leader] == nil {
			leaders = append(leaders, leader)
		}
		byLeader[leader] = append(byLeader[leader], m)
	}
	slices.Sort(leaders)
	for _, node := range leaders {
		some := byLeader[node]
		id := x.send(node, x.markersRequest(t.hard, some))
		x.sends[id] = &markerSend{t.id, some}
		for _, m := range some {
			m.send, m.since = id, x.now
		}
	}
	x.advance(t)
}

// leader returns who leads a partition, negative if no one does for now, and
// whether there is such a partition.
func (x *step) leader(m *marker) (node int32, exists bool) {
	if x.image == nil {
		return none, true // No one knows yet.
	}
	t := x.image.Topic(m.topic)
	if t == nil || m.partition < 0 || int(m.partition) >= len(t.Partitions) {
		return none, false
	}
	return t.Partitions[m.partition].Leader, true
}

// markersRequest has one marker for all partitions of one broker.
func (x *step) markersRequest(v *Value, some []*marker) *kmsg.WriteTxnMarkersRequest {
	out := kmsg.NewWriteTxnMarkersRequestMarker()
	out.ProducerID, out.ProducerEpoch, out.Committed = v.Producer.id, v.Producer.epoch, v.State == PrepareCommit
	out.CoordinatorEpoch, out.TransactionVersion = x.epoch, int8(min(max(v.Version, 0), tv2))
	machine.TxnStart(v.Start).Set(&out.UnknownTags)
	machine.StoreRun(x.run.ID).Set(&out.UnknownTags)
	for _, m := range some {
		if n := len(out.Topics); n == 0 || out.Topics[n-1].Topic != m.topic {
			t := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
			t.Topic = m.topic
			out.Topics = append(out.Topics, t)
		}
		last := &out.Topics[len(out.Topics)-1]
		last.Partitions = append(last.Partitions, m.partition)
	}
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version, req.Markers = markersVersion, []kmsg.WriteTxnMarkersRequestMarker{out}
	return req
}

// advance goes on when the last marker is written; until then it has the timer
// armed for the next that is to be sent.
func (x *step) advance(t *txn) {
	e := t.ending
	e.left = slices.DeleteFunc(e.left, func(m *marker) bool { return m.done })
	if len(e.left) == 0 {
		x.complete(t)
		return
	}
	if e.retry.IsZero() && slices.ContainsFunc(e.left, func(m *marker) bool { return m.send == 0 }) {
		e.retry = x.now.Add(e.backoff)
		e.backoff = min(2*e.backoff, maxMarkerBackoff)
	}
	e.timer = x.arm(markersKey(t), e.nextDispatch())
}

// nextDispatch is when markers are sent again, or a send is given up.
func (e *ending) nextDispatch() time.Time {
	at := e.retry
	for _, m := range e.left {
		if until := m.since.Add(markerPatience); m.send != 0 && (at.IsZero() || until.Before(at)) {
			at = until
		}
	}
	return at
}

// complete ends a transaction for good, and lets those go on who wait for it.
func (x *step) complete(t *txn) {
	e := t.ending
	t.ending = nil
	if e.timer != 0 {
		x.cancel(markersKey(t))
	}
	v := t.hard.completed(x.now)
	if x.hasLostPast(t) {
		v = v.retired()
	}
	x.write(t.id, v)
	x.goOn(t, e)
}

// marked takes in what a broker says about markers.
func (x *step) marked(s *markerSend, e machine.Sent) {
	t := x.txns[s.id]
	codes := markerCodes(t.hard.Producer.id, e)
	stale := false
	for _, m := range s.markers {
		code, ok := codes[partitionKey{m.topic, m.partition}]
		m.send, m.done = 0, ok && isWritten(code)
		stale = stale || ok && code == kerr.TransactionCoordinatorFenced.Code
	}
	if stale {
		// Another coordinator has ended a transaction of this producer. If it is
		// the coordinator now the append fails, and this one is loaded no more.
		v := *t.hard
		v.Updated = x.now.UnixMilli()
		x.write(t.id, &v)
	}
	x.advance(t)
}

type partitionKey struct {
	topic     string
	partition int32
}

// markerCodes reads an answer. Partitions that it does not have are asked about
// again.
func markerCodes(producer int64, e machine.Sent) map[partitionKey]int16 {
	resp, ok := e.Msg.(*kmsg.WriteTxnMarkersResponse)
	if e.Err != nil || !ok {
		return nil
	}
	codes := map[partitionKey]int16{}
	for i := range resp.Markers {
		if resp.Markers[i].ProducerID != producer {
			continue
		}
		for _, t := range resp.Markers[i].Topics {
			for _, p := range t.Partitions {
				codes[partitionKey{t.Topic, p.Partition}] = p.ErrorCode
			}
		}
	}
	return codes
}

// isWritten says whether a marker needs not be sent again. An old epoch can only
// mean that the transaction was ended there already; where Kafka stops at it, the
// transaction stays in Prepare for ever (KAFKA-19999). A topic that has no place
// for markers has none for transactions either.
func isWritten(code int16) bool {
	switch code {
	case 0, kerr.InvalidProducerEpoch.Code, kerr.UnsupportedForMessageFormat.Code:
		return true
	}
	return false
}

// remaining lists the partitions that have no marker yet.
func (e *ending) remaining() []topic {
	list := make([]topic, len(e.left))
	for i, m := range e.left {
		list[i] = topic{m.topic, []int32{m.partition}}
	}
	return union(nil, list)
}
