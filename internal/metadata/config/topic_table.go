package config

// compressionTypes are the values of compression.type.
var compressionTypes = []string{"producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"}

// gzipLevels are the values of compression.gzip.level, which has no 0.
var gzipLevels = []string{"-1", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

// topicTable lists the topic settings.
var topicTable = newTable([]Def{
	{Name: "cleanup.policy", Type: List, OneOf: []string{"delete", "compact"}, Synonym: "log.cleanup.policy", Doc: "delete drops old segments, compact keeps the newest record of each key; both may be given."},
	{Name: "compression.gzip.level", Type: Int, OneOf: gzipLevels, Synonym: "compression.gzip.level", Doc: "How hard the broker compresses where compression.type is gzip: 1 to 9, or -1 for the usual."},
	{Name: "compression.lz4.level", Type: Int, Min: 1, Max: 17, Synonym: "compression.lz4.level", Doc: "How hard the broker compresses where compression.type is lz4; 9 is the fast way."},
	{Name: "compression.type", Type: String, OneOf: compressionTypes, Synonym: "compression.type", Doc: "How record batches are compressed. producer keeps them as they came; a batch that came in another way is compressed anew by the broker."},
	{Name: "compression.zstd.level", Type: Int, Min: -131072, Max: 22, Synonym: "compression.zstd.level", Doc: "How hard the broker compresses where compression.type is zstd."},
	{Name: "delete.retention.ms", Type: Long, Min: 0, Max: maxLong, Synonym: "log.cleaner.delete.retention.ms", Doc: "How long tombstones stay in a compacted topic."},
	{Name: "index.interval.bytes", Type: Int, Min: 0, Max: 1<<31 - 1, Synonym: "log.index.interval.bytes", Doc: "How many bytes lie between two index entries."},
	{Name: "max.compaction.lag.ms", Type: Long, Min: 1, Synonym: "log.cleaner.max.compaction.lag.ms", Doc: "A record older than this is compacted whatever the dirty ratio."},
	{Name: "max.message.bytes", Type: Int, Min: 0, Max: 1<<31 - 1, Synonym: "message.max.bytes", Doc: "The largest record batch."},
	{Name: "message.timestamp.type", Type: String, OneOf: []string{"CreateTime", "LogAppendTime"}, Synonym: "log.message.timestamp.type", Doc: "Whether records keep the producer's timestamp or get the broker's."},
	{Name: "message.timestamp.before.max.ms", Type: Long, Min: 0, Max: maxLong, Synonym: "log.message.timestamp.before.max.ms", Doc: "How far a producer's timestamp may lie in the past."},
	{Name: "message.timestamp.after.max.ms", Type: Long, Min: 0, Max: maxLong, Synonym: "log.message.timestamp.after.max.ms", Doc: "How far a producer's timestamp may lie in the future."},
	{Name: "min.cleanable.dirty.ratio", Type: Double, Min: 0, Max: 1, Synonym: "log.cleaner.min.cleanable.ratio", Doc: "How much of a log must be new before it is compacted again."},
	{Name: "min.compaction.lag.ms", Type: Long, Min: 0, Max: maxLong, Synonym: "log.cleaner.min.compaction.lag.ms", Doc: "A record younger than this is not compacted."},
	{Name: "min.insync.replicas", Type: Int, Min: 1, Max: 1<<31 - 1, Synonym: "min.insync.replicas", Doc: "Copies that must exist of a record before acks=all is answered. With the redis store those are the primary and its replicas; with the others there is one."},
	{Name: "muster.redis.layout", Type: String, OneOf: RedisLayouts(), Synonym: "muster.redis.layout", Doc: "How the redis store keeps the topic: indexed and stream have one entry per record, which Redis clients can read and add to; with stream an offset is an id, and there are no transactions; log has one entry per batch, as Kafka stores it."},
	{Name: "muster.redis.sequence.bits", Type: Int, Min: 1, Max: 20, Synonym: "muster.redis.sequence.bits", Doc: "With layout stream, how many bits of an offset hold the sequence of the entry id; the others hold its milliseconds."},
	{Name: "retention.bytes", Type: Long, Min: -1, Synonym: "log.retention.bytes", Doc: "The size of a partition above which old segments are dropped; -1 for no limit."},
	{Name: "retention.ms", Type: Long, Min: -1, Synonym: "log.retention.ms", Doc: "The age at which segments are dropped; -1 for no limit."},
	{Name: "segment.bytes", Type: Int, Min: 1 << 14, Max: 1<<31 - 1, Synonym: "log.segment.bytes", Doc: "The size at which a new segment is started."},
	{Name: "segment.ms", Type: Long, Min: 1, Synonym: "log.roll.ms", Doc: "The age at which a new segment is started."},

	inertTopic("file.delete.delay.ms", Long, "60000"), inertTopic("flush.messages", Long, "9223372036854775807"), inertTopic("flush.ms", Long, "9223372036854775807"),
	inertTopic("follower.replication.throttled.replicas", List, ""), inertTopic("leader.replication.throttled.replicas", List, ""),
	inertTopic("message.downconversion.enable", Boolean, "false"), inertTopic("preallocate", Boolean, "false"),
	inertTopic("segment.index.bytes", Int, "10485760"), inertTopic("segment.jitter.ms", Long, "0"),
	inertTopic("unclean.leader.election.enable", Boolean, "false"),
})

func inertTopic(name string, t Type, value string) Def {
	return Def{Name: name, Type: t, Default: value, Inert: true, Doc: "Accepted for Kafka's tools; has no effect."}
}
