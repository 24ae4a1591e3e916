package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
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
