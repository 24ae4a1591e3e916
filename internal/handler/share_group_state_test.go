package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/handler"
	"muster/internal/metadata"
)

func (w *world) findShare(version int16, key string) kmsg.FindCoordinatorResponseCoordinator {
	w.t.Helper()
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.Version, req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = version, 2, key, []string{key}
	return w.request(req).(*kmsg.FindCoordinatorResponse).Coordinators[0]
}

func TestTheCoordinatorOfASharePartitionIsFound(t *testing.T) {
	const key = "g:AQIAAAAAAAAAAAAAAAAAAA:0"
	w := emptyWorld(t)
	for bad, version := range map[string]int16{key: 5, "g": 6, "g:AQ:0": 6, "": 6} {
		assert.Equal(t, w.findShare(version, bad).ErrorCode, kerr.InvalidRequest.Code, "error of %q in version %d", bad, version)
	}
	assert.True(t, w.c.Image().Topic(metadata.ShareStateTopic) == nil, "the topic is there before someone needs it")
	got := w.findShare(6, key)
	assert.True(t, got.ErrorCode == 0 && got.NodeID == 1 && got.Key == key, "%+v", got)
	topic := w.c.Image().Topic(metadata.ShareStateTopic)
	c := topic.Config
	assert.True(t, len(topic.Partitions) == 50 && topic.Internal, "%d partitions", len(topic.Partitions))
	assert.True(t, !c.Compact && c.Delete && c.RetentionAge < 0 && c.RetentionBytes < 0 && c.MaxMessageBytes == 64<<20 && c.SegmentBytes == 100<<20, "%+v", c)
}

// TestOnlyBrokersAskForShareState sends the requests as a client, as another broker of the cluster,
// and as this one.
func TestOnlyBrokersAskForShareState(t *testing.T) {
	w := emptyWorld(t)
	serve := func(req kmsg.Request, broker bool) error {
		frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, 7)[4:]
		resp, err := w.h.Serve(t.Context(), handler.Origin{Listener: "L", Host: "127.0.0.1", Broker: broker}, frame)
		if err == nil && resp.Pending() {
			<-resp.Ready()
		}
		return err
	}
	for key := int16(83); key <= 87; key++ {
		req := kmsg.RequestForKey(key)
		req.SetVersion(req.MaxVersion())
		assert.Error(t, serve(req, false), "%s of a client", kmsg.NameForKey(key))
		assert.NoError(t, serve(req, true), "%s of a broker", kmsg.NameForKey(key))
		resp, err := w.h.Do(t.Context(), req)
		assert.True(t, err == nil && resp.Key() == key, "%s of this broker: %v, %v", kmsg.NameForKey(key), resp, err)
	}
}
