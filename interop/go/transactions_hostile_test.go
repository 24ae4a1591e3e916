package interop

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// manyMarkers is how many markers, or partitions of one, a request has.
const manyMarkers = 100_000

func TestMarkersOfStrangersTakeLittle(t *testing.T) {
	b := serve(t, t.TempDir())
	createTopic(t, b.addr(), "out", 2)
	by := newBystander(t, b.addr())
	cl := transactional(t, b.addr(), "x")
	inTransaction(t, cl, kgo.TryCommit, "a1", "a2")
	w := dial(t, b.addr())
	for what, topics := range map[string][]kmsg.WriteTxnMarkersRequestMarkerTopic{
		"partitions that do not exist":      {{Topic: "none", Partitions: make([]int32, manyMarkers)}, {Topic: "out", Partitions: upTo(manyMarkers)[2:]}},
		"the same partition again":          {{Topic: "out", Partitions: make([]int32, manyMarkers)}},
		"the same group's partition":        {{Topic: "__consumer_offsets", Partitions: make([]int32, manyMarkers)}},
		"partitions that nobody may end in": {{Topic: "__transaction_state", Partitions: upTo(50)}},
	} {
		t.Run(what, func(t *testing.T) {
			req := &kmsg.WriteTxnMarkersRequest{Version: 1, Markers: []kmsg.WriteTxnMarkersRequestMarker{{ProducerID: 1, Topics: topics}}}
			ask[*kmsg.WriteTxnMarkersResponse](w, req)
		})
	}
	t.Run("markers for nothing", func(t *testing.T) {
		ask[*kmsg.WriteTxnMarkersResponse](w, &kmsg.WriteTxnMarkersRequest{Version: 1, Markers: make([]kmsg.WriteTxnMarkersRequestMarker, manyMarkers)})
	})
	by.done()
	checkMemory(t, b)
	inTransaction(t, cl, kgo.TryCommit, "b1", "b2")
	wantTopic(t, b.addr(), "out", kgo.ReadCommitted(), "a1", "a2", "b1", "b2")
}

func upTo(n int32) (list []int32) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

func TestStrangersCannotPassForBrokers(t *testing.T) {
	b := serve(t, t.TempDir())
	createTopic(t, b.addr(), "out", 2)
	w := dial(t, b.addr())
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = 5
	wantCode(t, "a broker's question", ask[*kmsg.AddPartitionsToTxnResponse](w, req).ErrorCode, kerr.ClusterAuthorizationFailed)
	if storeKind == "disk" {
		login := kmsg.NewPtrSASLHandshakeRequest()
		login.Version, login.Mechanism = 1, "MUSTER-SCRAM-SHA-256"
		wantCode(t, "a broker's login where there is one broker only", ask[*kmsg.SASLHandshakeResponse](w, login).ErrorCode, kerr.IllegalSaslState)
	}
	// The log that has the secret is no one's to read.
	wantCode(t, "Fetch of __cluster_metadata", fetched(t, ask[*kmsg.FetchResponse](w, fetchRequest("__cluster_metadata", 0, 0))).ErrorCode, kerr.UnknownTopicOrPartition)
	w.send(kmsg.NewPtrAllocateProducerIDsRequest())
	w.wantClosed()
}
