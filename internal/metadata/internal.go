package metadata

import (
	"maps"
	"slices"
	"strconv"

	"muster/internal/auth"
	"muster/internal/metadata/config"
)

// The internal topics.
const (
	ClusterMetadataTopic = "__cluster_metadata" // what images are replayed from
	OffsetsTopic         = "__consumer_offsets" // groups and committed offsets
	JournalTopic         = "__group_journal"    // what happened to groups, and why
	// HistoryTopic has where groups were, so that what is known of their lag over time
	// survives a restart.
	HistoryTopic = "__group_history"
	// TransactionsTopic holds transactional ids and their transactions.
	TransactionsTopic = "__transaction_state"
	// ShareStateTopic holds what leaders of share partitions have written of them.
	ShareStateTopic = "__share_group_state"
	// TransactionJournalTopic tells what happened to transactional ids, and who did it.
	TransactionJournalTopic = "__transaction_journal"
	// AuditTopic tells who logged in, who was denied what, and who changed what.
	AuditTopic = auth.AuditTopic
)

// auditPartitions is how many partitions the audit log has where brokers share the
// store: leaders are spread, so that each of up to so many brokers leads one, and
// writes what it sees there.
const auditPartitions = 16

// internal describes a topic that is muster's own. One without partitions is never
// created: its name is used for something else, or reserved.
type internal struct {
	partitions func(i *Image, shared bool) int32
	// onDemand says that asking for the topic's metadata creates it, as in Kafka.
	onDemand bool
	// fixed are the settings without which the broker could not write the topic,
	// or would lose what it needs of it. No one can alter them.
	fixed map[string]string
	// initial are the settings that it is created with besides.
	initial func(*config.Broker) map[string]string
	// together is how many bytes all its partitions may have; 0 if that is not limited.
	together int64
}

// segmentsKept is in how many segments the least of a topic lies whose size is limited:
// whole segments are deleted.
const (
	segmentsKept = 16
	leastSegment = 1 << 20
)

// always are the fixed settings of every internal topic: its records come from
// the broker, which must not be refused by settings that are meant for producers,
// nor by what the broker settings say for other topics.
func always(more map[string]string) map[string]string {
	out := map[string]string{
		"compression.type":                "producer",
		"message.timestamp.type":          "CreateTime",
		"message.timestamp.before.max.ms": "9223372036854775807",
		"message.timestamp.after.max.ms":  "9223372036854775807",
		"muster.redis.layout":             config.InternalLayout,
	}
	maps.Copy(out, more)
	return out
}

var internals = map[string]internal{
	ClusterMetadataTopic: {},
	OffsetsTopic: {
		onDemand:   true,
		partitions: func(i *Image, _ bool) int32 { return int32(i.Config.Int("offsets.topic.num.partitions")) },
		// A group's record holds all its members, so it may be large.
		fixed: always(map[string]string{
			"cleanup.policy": "compact", "retention.ms": "-1", "retention.bytes": "-1", "max.message.bytes": "67108864",
		}),
		initial: func(b *config.Broker) map[string]string {
			return map[string]string{"segment.bytes": b.Get("offsets.topic.segment.bytes")}
		},
	},
	JournalTopic: {
		partitions: journalPartitions(OffsetsTopic),
		fixed:      always(map[string]string{"cleanup.policy": "delete", "max.message.bytes": "8388608"}),
		initial: func(b *config.Broker) map[string]string {
			return map[string]string{"retention.ms": b.Get("muster.group.journal.retention.ms")}
		},
	},
	TransactionsTopic: {
		onDemand:   true,
		partitions: func(i *Image, _ bool) int32 { return int32(i.Config.Int("transaction.state.log.num.partitions")) },
		// A transaction's record names all its partitions, so it may be large.
		fixed: always(map[string]string{
			"cleanup.policy": "compact", "retention.ms": "-1", "retention.bytes": "-1", "max.message.bytes": "67108864",
		}),
		initial: func(b *config.Broker) map[string]string {
			return map[string]string{"segment.bytes": b.Get("transaction.state.log.segment.bytes")}
		},
	},
	TransactionJournalTopic: {
		partitions: journalPartitions(TransactionsTopic),
		fixed:      always(map[string]string{"cleanup.policy": "delete", "max.message.bytes": "8388608"}),
		initial: func(b *config.Broker) map[string]string {
			return map[string]string{"retention.ms": b.Get("muster.transaction.journal.retention.ms")}
		},
	},
	ShareStateTopic: {
		partitions: func(i *Image, _ bool) int32 {
			return int32(i.Config.Int("share.coordinator.state.topic.num.partitions"))
		},
		// It is not compacted: its coordinator deletes what no share partition needs. A
		// snapshot has all runs of one, so it may be large.
		fixed: always(map[string]string{
			"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1", "max.message.bytes": "67108864",
		}),
		initial: func(b *config.Broker) map[string]string {
			return map[string]string{"segment.bytes": b.Get("share.coordinator.state.topic.segment.bytes")}
		},
	},
	HistoryTopic: {
		partitions: journalPartitions(OffsetsTopic),
		fixed:      always(map[string]string{"cleanup.policy": "delete", "max.message.bytes": "8388608"}),
		initial: func(*config.Broker) map[string]string {
			return map[string]string{"retention.ms": "604800000"}
		},
		together: 256 << 20,
	},
	AuditTopic: {
		partitions: func(_ *Image, shared bool) int32 {
			if shared {
				return auditPartitions
			}
			return 1
		},
		fixed: always(map[string]string{"cleanup.policy": "delete", "max.message.bytes": "8388608"}),
		// Someone who is let in can change things all day, so its size is bounded too.
		initial: func(b *config.Broker) map[string]string {
			return map[string]string{
				"retention.ms": b.Get("muster.audit.retention.ms"), "retention.bytes": "268435456", "segment.bytes": "16777216",
			}
		},
	},
}

// journalPartitions gives a journal a partition for each shard where brokers
// share the work, so that the leader of a shard leads its journal too.
func journalPartitions(of string) func(i *Image, shared bool) int32 {
	return func(i *Image, shared bool) int32 {
		if shards := i.Topic(of); shards != nil && shared {
			return int32(len(shards.Partitions))
		}
		return 1
	}
}

// JournalOf returns the topic that a journal tells of, "" if a topic is no journal.
func JournalOf(topic string) string {
	switch topic {
	case JournalTopic, HistoryTopic:
		return OffsetsTopic
	case TransactionJournalTopic:
		return TransactionsTopic
	}
	return ""
}

// IsInternal says whether a topic is muster's own: clients may read it, and
// nothing else.
func IsInternal(name string) bool {
	_, ok := internals[name]
	return ok
}

// CreatedOnDemand says whether asking for an internal topic creates it.
func CreatedOnDemand(name string) bool { return internals[name].onDemand }

// NewInternal returns how an internal topic is created, in a store that brokers
// share or in a broker's own; false if it never is.
func NewInternal(i *Image, name string, shared bool) (NewTopic, bool) {
	spec := internals[name]
	if spec.partitions == nil {
		return NewTopic{}, false
	}
	set := maps.Clone(spec.fixed)
	maps.Copy(set, spec.initial(i.Config))
	partitions := spec.partitions(i, shared)
	if spec.together > 0 {
		each := spec.together / int64(partitions)
		set["retention.bytes"] = strconv.FormatInt(each, 10)
		set["segment.bytes"] = strconv.FormatInt(max(each/segmentsKept, leastSegment), 10)
	}
	return NewTopic{Name: name, Partitions: partitions, Replication: -1, Set: set}, true
}

// FixedSettings lists the settings of an internal topic that cannot be altered.
func FixedSettings(name string) []string {
	return slices.Sorted(maps.Keys(internals[name].fixed))
}

// FixSettings gives a topic that was created by an older muster the settings
// without which it would not be safe.
func FixSettings(t *Topic) {
	if fixed := internals[t.Name].fixed; fixed != nil {
		if t.Set == nil {
			t.Set = map[string]string{}
		}
		maps.Copy(t.Set, fixed)
	}
}
