package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/machine"
)

func TestWhatIsAnsweredLaterDoesNotLieInTheFrame(t *testing.T) {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version, req.Markers = 1, []kmsg.WriteTxnMarkersRequestMarker{{ProducerID: 7}}
	req.UnknownTags.Set(1, []byte("something else"))
	machine.TxnStart(1234).Set(&req.Markers[0].UnknownTags)
	frame := req.AppendTo(nil)
	got := kmsg.NewPtrWriteTxnMarkersRequest()
	got.Version = 1
	assert.Must(t, got.ReadFrom(frame))
	keepTags(got)
	clear(frame) // It is used again.
	if start := machine.TxnStartOf(&got.Markers[0].UnknownTags); start != 1234 || got.UnknownTags.Len() != 0 {
		t.Errorf("the transaction began at %d; %d tags of the request are kept", start, got.UnknownTags.Len())
	}
}
