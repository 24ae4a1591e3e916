package rig

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// createTopic creates a topic, with settings as "name=value".
func createTopic(c net.Conn, name string, partitions int, set ...string) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 5
	req.TimeoutMillis = 120_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, int32(partitions), 1
	for _, s := range set {
		key, value, _ := strings.Cut(s, "=")
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: key, Value: &value})
	}
	req.Topics = append(req.Topics, t)
	resp, err := Ask(c, req)
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return fmt.Errorf("create topic %s: %w", name, err)
		}
	}
	return nil
}

// CheckMetadata asks for all topics and checks how many partitions have a
// leader.
func CheckMetadata(c net.Conn, want int) error {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 9 // Topics is null, which asks for all.
	resp, err := Ask(c, req)
	if err != nil {
		return err
	}
	m := resp.(*kmsg.MetadataResponse)
	n := 0
	for _, t := range m.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return fmt.Errorf("metadata of %s: %w", *t.Topic, err)
		}
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 && p.Leader >= 0 && !t.IsInternal {
				n++
			}
		}
	}
	if n != want || len(m.Brokers) == 0 {
		return fmt.Errorf("metadata tells of %d brokers and %d partitions with a leader, expected 1 and %d", len(m.Brokers), n, want)
	}
	return nil
}

// CheckEnds checks the log end offset of every partition of a topic.
func CheckEnds(c net.Conn, topic string, partitions int, want int64) error {
	all := make([]int32, partitions)
	for i := range all {
		all[i] = int32(i)
	}
	ends, err := ListOffsets(c, topic, all, latest)
	if err != nil {
		return err
	}
	for i, end := range ends {
		if end != want {
			return fmt.Errorf("%s-%d ends at offset %d, expected %d", topic, i, end, want)
		}
	}
	return nil
}

// The timestamps that ask for the ends of a log.
const (
	latest   = -1
	Earliest = -2
)

// ListOffsets asks for an offset of each of some partitions.
func ListOffsets(c net.Conn, topic string, partitions []int32, timestamp int64) (map[int32]int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version = 5
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for _, i := range partitions {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp, p.CurrentLeaderEpoch = i, timestamp, -1
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	resp, err := Ask(c, req)
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	for _, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("offsets of %s-%d: %w", topic, p.Partition, err)
			}
			out[p.Partition] = p.Offset
		}
	}
	if len(out) != len(partitions) {
		return nil, fmt.Errorf("offsets of %d partitions of %s, not %d", len(out), topic, len(partitions))
	}
	return out, nil
}

// retriable are the errors that a broker gives while a topic or a coordinator is
// on its way.
var retriable = []error{
	kerr.UnknownTopicOrPartition, kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.BrokerNotAvailable,
	kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator, kerr.OffsetNotAvailable,
}

// Await calls fn until it no longer fails with a retriable error.
func (b *Bench) Await(fn func() error) error {
	for deadline := time.Now().Add(time.Minute); ; {
		err := fn()
		again := false
		for _, r := range retriable {
			again = again || errors.Is(err, r)
		}
		if !again || time.Now().After(deadline) || b.Context.Err() != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// NewTopic creates a topic and waits until all of its partitions are there,
// which Kafka does not wait for.
func (b *Bench) NewTopic(c net.Conn, name string, partitions int, set ...string) error {
	if err := createTopic(c, name, partitions, set...); err != nil {
		return err
	}
	return b.Await(func() error { return CheckEnds(c, name, partitions, 0) })
}
