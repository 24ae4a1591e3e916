package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"muster/internal/metadata"
	"muster/internal/record"
	"muster/internal/store"
)

// Keys of the records in __cluster_metadata.
const (
	keyCluster        = "cluster"
	keyConfig         = "config"
	keyProducerIDs    = "producer-ids"
	keySecret         = "secret"
	keyTopicPrefix    = "topic/"
	keyBrokerPrefix   = "broker/"
	keyDeletingPrefix = "deleting/"
	keyGroupPrefix    = "group/"
	keyUserPrefix     = "user/"
	keyRulePrefix     = "acl/"
	keyQuotaPrefix    = "quota/"
)

type clusterValue struct {
	ClusterID   string `json:"clusterId"`
	LeaderEpoch int32  `json:"leaderEpoch"`
}

type producerIDsValue struct {
	Next int64 `json:"next"` // first id not reserved
}

// secretValue is what brokers know each other by. Earlier versions have the first field
// only.
type secretValue struct {
	Secret    string `json:"secret"`
	Number    int    `json:"number,omitempty"`
	Previous  string `json:"previous,omitempty"`
	RotatedAt int64  `json:"rotatedAt,omitempty"` // in milliseconds
	First     string `json:"first,omitempty"`
}

type topicValue struct {
	ID         string            `json:"id"`
	Partitions int               `json:"partitions"`
	Config     map[string]string `json:"config,omitempty"`
	// Leaders holds the leader and the leader epoch of each partition. It is
	// left out by a broker alone, which leads them all.
	Leaders [][2]int32 `json:"leaders,omitempty"`
	// Preferred holds the broker that each partition was given to, -1 for none. It
	// is left out where none was, and by versions that do not know it.
	Preferred []int32 `json:"preferred,omitempty"`
}

type brokerValue struct {
	Incarnation string          `json:"incarnation"`
	Rack        string          `json:"rack,omitempty"`
	Endpoints   []endpointValue `json:"endpoints"`
	HTTP        string          `json:"http,omitempty"`
}

type endpointValue struct {
	Listener string `json:"listener"`
	Host     string `json:"host"`
	Port     int32  `json:"port"`
}

// deletingValue says that a topic is gone, and that a broker is deleting its
// records.
type deletingValue struct {
	By         int32 `json:"by"`
	Partitions int   `json:"partitions"`
}

func keyed(key string, value any) record.Record {
	b, err := json.Marshal(value)
	if err != nil {
		panic("metadata records are plain data: " + err.Error())
	}
	return record.Record{Key: []byte(key), Value: b}
}

func tombstone(key string) record.Record { return record.Record{Key: []byte(key)} }

func clusterRecord(id string, leaderEpoch int32) record.Record {
	return keyed(keyCluster, clusterValue{ClusterID: id, LeaderEpoch: leaderEpoch})
}

func producerIDsRecord(next int64) record.Record {
	return keyed(keyProducerIDs, producerIDsValue{Next: next})
}

func secretRecord(s metadata.Secrets) record.Record {
	v := secretValue{Secret: s.Current.Text, Number: s.Current.Number, Previous: s.Previous.Text, First: s.First}
	if v.Previous != "" {
		v.RotatedAt = s.Rotated.UnixMilli()
	}
	return keyed(keySecret, v)
}

func (v *secretValue) secrets() metadata.Secrets {
	s := metadata.Secrets{Current: metadata.Secret{Text: v.Secret, Number: v.Number}, First: v.First}
	if v.Previous != "" {
		s.Previous, s.Rotated = metadata.Secret{Text: v.Previous, Number: v.Number - 1}, time.UnixMilli(v.RotatedAt)
	}
	return s
}

func configRecord(set map[string]string) record.Record { return keyed(keyConfig, set) }

func groupRecord(group string, set map[string]string) record.Record {
	if len(set) == 0 {
		return tombstone(keyGroupPrefix + group)
	}
	return keyed(keyGroupPrefix+group, set)
}

func topicRecord(t metadata.Topic, shared bool) record.Record {
	v := topicValue{ID: t.ID.String(), Partitions: len(t.Partitions), Config: t.Set}
	if shared {
		for _, p := range t.Partitions {
			v.Leaders = append(v.Leaders, [2]int32{p.Leader, p.LeaderEpoch})
		}
		v.Preferred = t.Preferred
	}
	return keyed(keyTopicPrefix+t.Name, v)
}

func topicTombstone(name string) record.Record { return tombstone(keyTopicPrefix + name) }

func brokerKey(id int32) string { return keyBrokerPrefix + strconv.Itoa(int(id)) }

func brokerRecord(b metadata.Broker) record.Record {
	v := brokerValue{Incarnation: b.Incarnation, Rack: b.Rack, HTTP: b.HTTP}
	for _, e := range b.Endpoints {
		v.Endpoints = append(v.Endpoints, endpointValue(e))
	}
	return keyed(brokerKey(b.ID), v)
}

func brokerTombstone(id int32) record.Record { return tombstone(brokerKey(id)) }

func deletingRecord(name string, v deletingValue) record.Record {
	return keyed(keyDeletingPrefix+name, v)
}

func deletingTombstone(name string) record.Record { return tombstone(keyDeletingPrefix + name) }

// state is what the log says besides the image.
type state struct {
	self           int32
	clusterID      string
	leaderEpoch    int32
	nextProducerID int64
	deleting       map[string]deletingValue
}

func newState(self int32) state { return state{self: self, deleting: map[string]deletingValue{}} }

// replay reads a whole log.
func (s *state) replay(ctx context.Context, log store.Log, edit *metadata.Edit) error {
	offset, end := log.Bounds()
	for offset < end {
		recs, err := log.Read(ctx, store.ReadRequest{Offset: offset, NextOffset: end, MaxBytes: 1 << 20, MinOne: true})
		if err != nil {
			return err
		}
		b, err := recs.Load()
		recs.Release()
		if err != nil {
			return err
		}
		if len(b) == 0 {
			break
		}
		for len(b) > 0 {
			var batch record.Batch
			if batch, b, err = record.Next(b); err != nil {
				return err
			}
			if err := batch.Each(func(r *record.Record) error { return s.apply(r, edit) }); err != nil {
				return err
			}
			offset = batch.LastOffset() + 1
		}
	}
	return nil
}

// apply takes in a record.
func (s *state) apply(r *record.Record, edit *metadata.Edit) error {
	if err := s.note(r); err != nil {
		return err
	}
	key := string(r.Key)
	kind, name, _ := strings.Cut(key, "/")
	switch {
	case kind+"/" == keyTopicPrefix && r.Tombstone():
		edit.RemoveTopic(name)
		return nil
	case kind+"/" == keyTopicPrefix:
		return s.applyTopic(edit, name, r.Value)
	case kind+"/" == keyBrokerPrefix:
		return applyBroker(edit, name, r)
	case kind+"/" == keyGroupPrefix:
		return applyGroup(edit, name, r)
	case kind+"/" == keyUserPrefix:
		return applyUser(edit, name, r)
	case kind+"/" == keyRulePrefix:
		return applyRule(edit, name, r)
	case kind+"/" == keyQuotaPrefix:
		return applyQuotas(edit, name, r)
	case key == keyConfig:
		var v map[string]string
		err := json.Unmarshal(r.Value, &v)
		edit.SetBrokerConfig(v)
		return err
	case key == keyCluster:
		edit.SetClusterID(s.clusterID)
		return nil
	case key == keySecret:
		var v secretValue
		err := json.Unmarshal(r.Value, &v)
		edit.SetSecrets(v.secrets())
		return err
	case key == keyProducerIDs, kind+"/" == keyDeletingPrefix:
		return nil
	}
	return fmt.Errorf("unknown metadata record %q: it was written by a newer muster", key)
}

// note takes in what a record says besides the image.
func (s *state) note(r *record.Record) error {
	key := string(r.Key)
	name, isDeleting := strings.CutPrefix(key, keyDeletingPrefix)
	switch {
	case isDeleting && r.Tombstone():
		delete(s.deleting, name)
	case isDeleting:
		var v deletingValue
		err := json.Unmarshal(r.Value, &v)
		s.deleting[name] = v
		return err
	case key == keyCluster:
		var v clusterValue
		err := json.Unmarshal(r.Value, &v)
		s.clusterID, s.leaderEpoch = v.ClusterID, v.LeaderEpoch
		return err
	case key == keyProducerIDs:
		var v producerIDsValue
		err := json.Unmarshal(r.Value, &v)
		s.nextProducerID = v.Next
		return err
	}
	return nil
}

func (s *state) applyTopic(edit *metadata.Edit, name string, value []byte) error {
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
	t := metadata.Topic{Name: name, ID: id, Internal: metadata.IsInternal(name), Set: maps.Clone(v.Config), Preferred: v.Preferred[:min(len(v.Preferred), v.Partitions)]}
	for i := range v.Partitions {
		p := metadata.Partition{Leader: s.self}
		if i < len(v.Leaders) {
			p = metadata.Partition{Leader: v.Leaders[i][0], LeaderEpoch: v.Leaders[i][1]}
		}
		t.Partitions = append(t.Partitions, p)
	}
	metadata.FixSettings(&t)
	edit.PutTopic(t)
	return nil
}

func applyGroup(edit *metadata.Edit, group string, r *record.Record) error {
	var set map[string]string
	if !r.Tombstone() {
		if err := json.Unmarshal(r.Value, &set); err != nil {
			return err
		}
	}
	edit.SetGroup(group, set)
	return nil
}

func applyBroker(edit *metadata.Edit, name string, r *record.Record) error {
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return fmt.Errorf("metadata record of broker %q: %w", name, err)
	}
	if r.Tombstone() {
		edit.RemoveBroker(int32(id))
		return nil
	}
	var v brokerValue
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return err
	}
	b := metadata.Broker{ID: int32(id), Rack: v.Rack, Incarnation: v.Incarnation, HTTP: v.HTTP}
	for _, e := range v.Endpoints {
		b.Endpoints = append(b.Endpoints, metadata.Endpoint(e))
	}
	edit.PutBroker(b)
	return nil
}
