package handler

import (
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// TestAssignmentsMayNameAnyBroker reads assignments of CreateTopics and of
// CreatePartitions in a fleet of three.
func TestAssignmentsMayNameAnyBroker(t *testing.T) {
	edit := metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1}, metadata.Broker{ID: 2}, metadata.Broker{ID: 3}).Edit()
	edit.PutTopic(metadata.Topic{Name: "there", Partitions: make([]metadata.Partition, 2)})
	image := edit.Image()
	for _, c := range []struct {
		name     string
		replicas [][]int32
		want     []int32
	}{
		{"others", [][]int32{{3}, {2}, {3}}, []int32{3, 2, 3}},
		{"with replicas", [][]int32{{2, 3}, {1, 2}}, []int32{2, 1}},
		{"one that is not there", [][]int32{{1}, {4}}, nil},
		{"one that is not there, second", [][]int32{{1, 4}}, nil},
		{"nobody", [][]int32{{}}, nil},
		{"twice", [][]int32{{1, 1}}, nil},
		{"different numbers", [][]int32{{1, 2}, {1}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			topic := kmsg.NewCreateTopicsRequestTopic()
			topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "new", -1, -1
			grow := kmsg.NewCreatePartitionsRequestTopic()
			grow.Topic, grow.Count = "there", int32(2+len(c.replicas))
			for i, replicas := range c.replicas {
				a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
				a.Partition, a.Replicas = int32(i), replicas
				topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
				b := kmsg.NewCreatePartitionsRequestTopicAssignment()
				b.Replicas = replicas
				grow.Assignment = append(grow.Assignment, b)
			}
			nt, err := (&Handler{}).newTopic(image, &topic)
			leaders, growErr := newLeaders(image, &grow)
			if c.want == nil {
				assert.True(t, errors.Is(err, kerr.InvalidReplicaAssignment) && errors.Is(growErr, kerr.InvalidReplicaAssignment), "%v and %v", err, growErr)
				return
			}
			if err != nil || growErr != nil || !slices.Equal(nt.Leaders, c.want) || !slices.Equal(leaders, c.want) {
				t.Errorf("%v, %v and %v, %v", nt.Leaders, err, leaders, growErr)
			}
		})
	}
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "new", -1, -1
	for _, partitions := range [][]int32{{0, 2}, {0, 0}, {-1, 0}} {
		topic.ReplicaAssignment = nil
		for _, p := range partitions {
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			a.Partition, a.Replicas = p, []int32{1}
			topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
		}
		if _, err := (&Handler{}).newTopic(image, &topic); !errors.Is(err, kerr.InvalidReplicaAssignment) {
			t.Errorf("partitions %v: %v", partitions, err)
		}
	}
}
