package config

import (
	"slices"
	"strconv"
	"time"
)

// Topic holds a topic's settings, typed and complete.
type Topic struct {
	Compact         bool
	Delete          bool
	RetentionAge    time.Duration // negative: no limit
	RetentionBytes  int64         // negative: no limit
	SegmentBytes    int64
	SegmentAge      time.Duration
	IndexInterval   int64
	MaxMessageBytes int64
	Compression     string // producer, or what batches are to be compressed with
	CompressLevel   int    // of that codec
	LogAppendTime   bool
	TimestampBefore time.Duration
	TimestampAfter  time.Duration
	MinCompactLag   time.Duration
	MaxCompactLag   time.Duration
	MinDirtyRatio   float64
	DeleteRetention time.Duration
	MinInSync       int
	RedisLayout     string
	SequenceBits    int
	Traits          Traits
	StreamPrefix    string // of the keys of streams that Redis clients can read; empty if there are none
}

// CheckTopic says whether a topic setting may have a value.
func CheckTopic(name, value string) error { return topicTable.check("topic", name, value) }

// TopicDef returns the definition of a topic setting, nil if there is none.
func TopicDef(name string) *Def { return topicTable.byName[name] }

// TopicDefs lists the topic settings in the order of their names.
func TopicDefs() []Def { return topicTable.defs }

// TopicValue returns the value that a topic setting has.
func TopicValue(b *Broker, set map[string]string, name string) string {
	if v, ok := set[name]; ok {
		return v
	}
	d := topicTable.byName[name]
	if d.Synonym != "" {
		return b.Get(d.Synonym)
	}
	return d.Default
}

// NewTopic makes a topic's typed settings from those that are set on it.
func NewTopic(b *Broker, set map[string]string) Topic {
	get := func(name string) string { return TopicValue(b, set, name) }
	num := func(name string) int64 { return integer(get(name)) }
	policy := SplitList(get("cleanup.policy"))
	ratio, _ := strconv.ParseFloat(get("min.cleanable.dirty.ratio"), 64)
	layout := get("muster.redis.layout")
	traits := traitsOf(b, layout)
	return Topic{
		Compact:         slices.Contains(policy, "compact"),
		Delete:          slices.Contains(policy, "delete"),
		RetentionAge:    millis(num("retention.ms")),
		RetentionBytes:  num("retention.bytes"),
		SegmentBytes:    num("segment.bytes"),
		SegmentAge:      millis(num("segment.ms")),
		IndexInterval:   num("index.interval.bytes"),
		MaxMessageBytes: num("max.message.bytes"),
		Compression:     get("compression.type"),
		CompressLevel:   compressLevel(get("compression.type"), num),
		LogAppendTime:   get("message.timestamp.type") == "LogAppendTime",
		TimestampBefore: millis(num("message.timestamp.before.max.ms")),
		TimestampAfter:  millis(num("message.timestamp.after.max.ms")),
		MinCompactLag:   millis(num("min.compaction.lag.ms")),
		MaxCompactLag:   millis(num("max.compaction.lag.ms")),
		MinDirtyRatio:   ratio,
		DeleteRetention: millis(num("delete.retention.ms")),
		MinInSync:       int(num("min.insync.replicas")),
		RedisLayout:     layout,
		SequenceBits:    int(num("muster.redis.sequence.bits")),
		Traits:          traits,
		StreamPrefix:    streamPrefix(b, traits),
	}
}

// compressLevel returns the level of a codec, 0 for those that have none.
func compressLevel(codec string, num func(string) int64) int {
	name := "compression." + codec + ".level"
	if topicTable.byName[name] == nil {
		return 0
	}
	return int(num(name))
}
