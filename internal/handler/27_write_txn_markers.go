// WriteTxnMarkers (key 27) ends transactions in partitions. Coordinators send it,
// and the admin tool that aborts a hanging transaction.
//
//	v1 flexible; v2 the version of transactions that a marker goes by (KIP-1228)
//
// A marker for a partition of __consumer_offsets goes to the group coordinator,
// which is the only one to write there. Each marker is answered for each partition when
// it is durable there. When a transaction began, by which a leader tells a late marker
// from a timely one, is believed of brokers of the cluster only; and no one else
// raises the coordinator epoch, since one that is too high would have all markers
// refused that follow.

package handler

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/partition"
)

// markersAtOnce is how many markers of one request are under way at a time.
const markersAtOnce = 256

func (h *Handler) writeTxnMarkers(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.WriteTxnMarkersRequest)
	trusted := c.fromBroker()
	if !trusted && !c.seesCluster(auth.Alter) && !c.mayCluster(auth.ClusterAction) {
		return deniedMarkers(req), nil
	}
	ctx, cancel := context.WithTimeout(ctx, betweenTimeout)
	defer cancel()
	w := &markerWrite{h: h, c: c, trusted: trusted, free: make(chan struct{}, markersAtOnce)}
	resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	for i := range req.Markers {
		resp.Markers = append(resp.Markers, w.marker(ctx, &req.Markers[i]))
	}
	w.wait(ctx)
	if !w.trusted && h.opts.Marked != nil {
		for i := range req.Markers {
			w.tell(&req.Markers[i], &resp.Markers[i])
		}
	}
	return resp, nil
}

// deniedMarkers tells who may not write markers so, for each partition.
func deniedMarkers(req *kmsg.WriteTxnMarkersRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	for _, m := range req.Markers {
		out := kmsg.NewWriteTxnMarkersResponseMarker()
		out.ProducerID = m.ProducerID
		for _, t := range m.Topics {
			topic := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			topic.Topic = t.Topic
			for _, index := range t.Partitions {
				p := kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
				p.Partition, p.ErrorCode = index, kerr.ClusterAuthorizationFailed.Code
				topic.Partitions = append(topic.Partitions, p)
			}
			out.Topics = append(out.Topics, topic)
		}
		resp.Markers = append(resp.Markers, out)
	}
	return resp
}

// Marked is a transaction that someone who is no broker ended in partitions.
type Marked struct {
	ProducerID    int64
	ProducerEpoch int16
	Commit        bool
	Partitions    []string // the first of them
	Count         int
}

// maxMarked is how many partitions are named.
const maxMarked = 20

// tell tells where a marker was written.
func (w *markerWrite) tell(m *kmsg.WriteTxnMarkersRequestMarker, answer *kmsg.WriteTxnMarkersResponseMarker) {
	out := Marked{ProducerID: m.ProducerID, ProducerEpoch: m.ProducerEpoch, Commit: m.Committed}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				continue
			}
			if out.Count++; out.Count <= maxMarked {
				out.Partitions = append(out.Partitions, fmt.Sprintf("%s-%d", t.Topic, p.Partition))
			}
		}
	}
	if out.Count > 0 {
		w.h.opts.Marked(w.c.client(), out)
	}
}

// markerWrite is the work of one request.
type markerWrite struct {
	h       *Handler
	c       *call
	trusted bool
	free    chan struct{} // has an element for each marker that is under way
	writing sync.WaitGroup

	mu    sync.Mutex
	ended bool // the answer is on its way, and no longer changed
}

// marker begins to write one marker to its partitions.
func (w *markerWrite) marker(ctx context.Context, m *kmsg.WriteTxnMarkersRequestMarker) kmsg.WriteTxnMarkersResponseMarker {
	out := kmsg.NewWriteTxnMarkersResponseMarker()
	out.ProducerID = m.ProducerID
	if !w.trusted {
		m.UnknownTags = kmsg.Tags{}
	}
	start := int64(machine.TxnStartOf(&m.UnknownTags))
	topics, _ := distinct(m.Topics, func(t *kmsg.WriteTxnMarkersRequestMarkerTopic) (string, *[]int32) {
		return t.Topic, &t.Partitions
	}, itself)
	for _, t := range topics {
		answer := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
		answer.Topic = t.Topic
		answer.Partitions = make([]kmsg.WriteTxnMarkersResponseMarkerTopicPartition, len(t.Partitions))
		for i, index := range t.Partitions {
			answer.Partitions[i].Partition = index
			// Until it is known to be written, and if it never is.
			answer.Partitions[i].ErrorCode = kerr.RequestTimedOut.Code
			w.begin(ctx, m, start, t.Topic, index, &answer.Partitions[i].ErrorCode)
		}
		out.Topics = append(out.Topics, answer)
	}
	return out
}

// begin begins to write a marker to one partition. The code is changed when it is
// done, if someone still waits for that.
func (w *markerWrite) begin(ctx context.Context, m *kmsg.WriteTxnMarkersRequestMarker, start int64, topic string, index int32, code *int16) {
	part, err := w.find(topic, index)
	if err != nil {
		*code = err.Code
		return
	}
	select {
	case w.free <- struct{}{}:
	case <-ctx.Done():
		return
	}
	w.writing.Add(1)
	done := func(err *kerr.Error) {
		w.mu.Lock()
		if !w.ended {
			*code = errCode(err)
		}
		w.mu.Unlock()
		<-w.free
		w.writing.Done()
	}
	epoch := m.CoordinatorEpoch
	if !w.trusted {
		epoch = max(min(epoch, part.CoordinatorEpoch(m.ProducerID)), 0) // Below is only for ourselves.
	}
	if topic == metadata.OffsetsTopic {
		go func() { done(w.toGroups(ctx, m, index, epoch)) }()
		return
	}
	part.WriteMarker(ctx, partition.Marker{
		ProducerID: m.ProducerID, ProducerEpoch: m.ProducerEpoch, Commit: m.Committed,
		CoordinatorEpoch: epoch, Version: m.TransactionVersion, Start: start, Run: string(machine.StoreRunOf(&m.UnknownTags)),
	}, done)
}

// find returns the partition that a marker is for.
func (w *markerWrite) find(topic string, index int32) (*partition.Partition, *kerr.Error) {
	if metadata.IsInternal(topic) && topic != metadata.OffsetsTopic {
		return nil, kerr.TopicAuthorizationFailed // No one else writes there.
	}
	return w.h.find(w.c.image, topic, index)
}

// toGroups has the group coordinator write a marker.
func (w *markerWrite) toGroups(ctx context.Context, m *kmsg.WriteTxnMarkersRequestMarker, index, epoch int32) *kerr.Error {
	one := *m
	one.CoordinatorEpoch = epoch
	topic := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	topic.Topic, topic.Partitions = metadata.OffsetsTopic, []int32{index}
	one.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{topic}
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version, req.Markers = w.c.req.GetVersion(), []kmsg.WriteTxnMarkersRequestMarker{one}
	resp := w.h.opts.Groups.DoAt(ctx, index, w.c.client(), req).(*kmsg.WriteTxnMarkersResponse)
	for _, m := range resp.Markers {
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				return markerError(p.ErrorCode)
			}
		}
	}
	return kerr.UnknownServerError
}

// markerError rewrites the errors of a coordinator: whoever sends markers expects
// those of a partition, and sends them again.
func markerError(code int16) *kerr.Error {
	switch err := kerr.TypedErrorForCode(code); err {
	case kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator:
		return kerr.NotLeaderForPartition
	default:
		return err
	}
}

// wait waits until all markers are written, or ctx ends.
func (w *markerWrite) wait(ctx context.Context) {
	all := make(chan struct{})
	go func() {
		w.writing.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}
