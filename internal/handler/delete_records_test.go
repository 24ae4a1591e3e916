package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/metadata"
)

// Records are deleted where the policy of the topic deletes some.
func TestRecordsOfACompactedTopicAreNotDeleted(t *testing.T) {
	w := newWorld(t)
	for policy, want := range map[string]int16{"delete": 0, "compact": kerr.PolicyViolation.Code, "compact,delete": 0} {
		name := "of-" + map[string]string{"delete": "d", "compact": "c", "compact,delete": "cd"}[policy]
		w.create(metadata.NewTopic{Name: name, Partitions: 1, Replication: 1, Set: map[string]string{"cleanup.policy": policy}})
		req := kmsg.NewPtrDeleteRecordsRequest()
		req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: name, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: -1}}}}
		assert.Equal(t, w.request(req).(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0].ErrorCode, want, "cleanup.policy=%s", policy)
	}
}
