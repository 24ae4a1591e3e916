package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"muster/internal/metadata"
	"muster/internal/record"
	"muster/internal/store"
)

// Keys of the records in __cluster_metadata.
const (
	keyCluster     = "cluster"
	keyConfig      = "config"
	keyProducerIDs = "producer-ids"
	keyTopicPrefix = "topic/"
)

type clusterValue struct {
	ClusterID   string `json:"clusterId"`
	LeaderEpoch int32  `json:"leaderEpoch"`
}

type producerIDsValue struct {
	Next int64 `json:"next"` // first id not reserved
}

type topicValue struct {
	ID         string            `json:"id"`
	Partitions int               `json:"partitions"`
	Config     map[string]string `json:"config,omitempty"`
}

func keyed(key string, value any) record.Record {
	b, err := json.Marshal(value)
	if err != nil {
		panic("metadata records are plain data: " + err.Error())
	}
	return record.Record{Key: []byte(key), Value: b}
}

func clusterRecord(id string, leaderEpoch int32) record.Record {
	return keyed(keyCluster, clusterValue{ClusterID: id, LeaderEpoch: leaderEpoch})
}

func producerIDsRecord(next int64) record.Record {
	return keyed(keyProducerIDs, producerIDsValue{Next: next})
}

func configRecord(set map[string]string) record.Record { return keyed(keyConfig, set) }

func topicRecord(t metadata.Topic) record.Record {
	return keyed(keyTopicPrefix+t.Name, topicValue{ID: t.ID.String(), Partitions: len(t.Partitions), Config: t.Set})
}

func topicTombstone(name string) record.Record {
	return record.Record{Key: []byte(keyTopicPrefix + name)}
}

// replayed is what the log says.
type replayed struct {
	edit           *metadata.Edit
	self           int32
	clusterID      string
	leaderEpoch    int32
	nextProducerID int64
}

// replay reads the whole log.
func replay(ctx context.Context, log store.Log, empty *metadata.Image) (*replayed, error) {
	state := &replayed{edit: empty.Edit(), self: empty.Brokers[0].ID}
	offset, end := log.Bounds()
	for offset < end {
		recs, err := log.Read(ctx, store.ReadRequest{Offset: offset, NextOffset: end, MaxBytes: 1 << 20, MinOne: true})
		if err != nil {
			return nil, err
		}
		b, err := recs.Load()
		recs.Release()
		if err != nil {
			return nil, err
		}
		if len(b) == 0 {
			break
		}
		for len(b) > 0 {
			var batch record.Batch
			if batch, b, err = record.Next(b); err != nil {
				return nil, err
			}
			if err := batch.Each(state.apply); err != nil {
				return nil, err
			}
			offset = batch.LastOffset() + 1
		}
	}
	return state, nil
}

func (s *replayed) apply(r *record.Record) error {
	key := string(r.Key)
	name, isTopic := strings.CutPrefix(key, keyTopicPrefix)
	switch {
	case isTopic && r.Tombstone():
		s.edit.RemoveTopic(name)
		return nil
	case isTopic:
		return s.applyTopic(name, r.Value)
	case key == keyCluster:
		var v clusterValue
		err := json.Unmarshal(r.Value, &v)
		s.clusterID, s.leaderEpoch = v.ClusterID, v.LeaderEpoch
		return err
	case key == keyConfig:
		var v map[string]string
		err := json.Unmarshal(r.Value, &v)
		s.edit.SetBrokerConfig(v)
		return err
	case key == keyProducerIDs:
		var v producerIDsValue
		err := json.Unmarshal(r.Value, &v)
		s.nextProducerID = v.Next
		return err
	}
	return fmt.Errorf("unknown metadata record %q: the data folder was written by a newer muster", key)
}

func (s *replayed) applyTopic(name string, value []byte) error {
	var v topicValue
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	id, err := metadata.ParseTopicID(v.ID)
	if err != nil {
		return err
	}
	if v.Partitions < 1 || v.Partitions > maxPartitionsPerTopic {
		return fmt.Errorf("metadata record of topic %q has %d partitions", name, v.Partitions)
	}
	t := metadata.Topic{Name: name, ID: id, Internal: metadata.IsInternal(name), Set: maps.Clone(v.Config)}
	for range v.Partitions {
		t.Partitions = append(t.Partitions, metadata.Partition{Leader: s.self})
	}
	s.edit.PutTopic(t)
	return nil
}
