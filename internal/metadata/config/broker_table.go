package config

import "slices"

//go:generate go test -run TestSettingsDocIsCurrent -rewrite .

const (
	maxLong = 1<<63 - 1

	ms     = 1
	second = 1000 * ms
	minute = 60 * second
	hour   = 60 * minute
)

// brokerTable lists the broker settings; those about security are in securityDefs.
var brokerTable = newTable(append([]Def{
	{Name: "node.id", Type: Int, Default: "1", Min: 0, Max: 1<<31 - 1, Static: true, Fallbacks: []Fallback{{"broker.id", 1}}, Doc: "The number of this broker."},
	{Name: "broker.id", Type: Int, Default: "1", Static: true, Doc: "Older name of node.id."},
	{Name: "broker.rack", Type: String, Static: true, Doc: "The rack that Metadata reports for this broker."},
	{Name: "listeners", Type: List, Default: "PLAINTEXT://127.0.0.1:9092", Static: true, Doc: "Where to listen: NAME://host:port, comma-separated."},
	{Name: "advertised.listeners", Type: List, Static: true, Doc: "What clients are told to connect to, per listener name; the listening address if not set."},
	{Name: "listener.security.protocol.map", Type: List, Default: "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL", Static: true, Doc: "The security protocol (PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL) of each listener name."},
	{Name: "inter.broker.listener.name", Type: String, Static: true, Doc: "The listener by which brokers that share a store talk to each other; the first if not set."},
	{Name: "muster.http.listener", Type: String, Static: true, Doc: "Where to answer HTTP requests, host:port, with https:// before it for TLS: /healthz says whether the broker is well, /api/v1 how its groups are. Empty for nowhere. If it is not set, muster serve answers at 127.0.0.1:9021 if nothing else does."},
	{Name: "muster.http.advertised", Type: String, Static: true, Doc: "Where other brokers, and the command, reach the HTTP address: host:port or a URL. Empty for nowhere: then other brokers do not tell of this one's groups. If it is not set, the address that it listens on, or the host of the first advertised listener if that is all addresses."},
	{Name: "muster.http.allowed.hosts", Type: List, Static: true, Doc: "Names by which browsers and programs may reach the HTTP address, besides localhost, addresses and the machine's own name; * for any."},
	{Name: "muster.http.ssl.keystore.location", Type: String, Static: true, Doc: "A file with private key and certificate chain for https, PEM, PKCS12 or JKS; that of ssl.keystore.location if not set. It is read again when it changes."},
	{Name: "muster.http.ssl.keystore.password", Type: Password, Static: true, Doc: "The password of that file, or of the private key in it."},
	{Name: "muster.http.oidc.issuer", Type: String, Static: true, Doc: "The OpenID Connect issuer at which people can log in to the console, https://…"},
	{Name: "muster.http.oidc.client.id", Type: String, Static: true, Doc: "As whom the broker is known to the OpenID Connect issuer."},
	{Name: "muster.http.oidc.client.secret", Type: Password, Static: true, Doc: "What it shows there; nothing if it is a public client."},
	{Name: "muster.http.oidc.principal.claim", Type: String, Default: "sub", Static: true, Doc: "The claim of the OpenID Connect token that holds the name of the user."},
	{Name: "muster.http.oidc.groups.claim", Type: String, Static: true, Doc: "The claim of the OpenID Connect token that holds the groups of the user, as muster.oauthbearer.groups.claim does for other tokens. None if not set."},
	{Name: "muster.http.anonymous", Type: String, Default: "reads", OneOf: []string{"reads", "full"}, Static: true, Doc: "What people of other machines may do over HTTP while there are no users to log in as: only read, and not what is in records (reads), or everything (full)."},
	{Name: "log.dirs", Type: List, Static: true, Fallbacks: []Fallback{{"log.dir", 1}}, Doc: "The data folder. Only one."},
	{Name: "log.dir", Type: String, Default: "./data", Static: true, Doc: "The data folder."},
	{Name: "muster.store", Type: String, Default: "disk", OneOf: []string{"disk", "mem", "redis"}, Static: true, Doc: "Where records are kept: disk, mem or redis."},
	{Name: "muster.redis.url", Type: Password, Static: true, Doc: "The Redis or Valkey that the redis store uses: redis://, rediss://, redis+sentinel:// or redis+cluster://. It may hold a password, so it is not shown."},
	{Name: "muster.redis.prefix", Type: String, Default: "muster", Static: true, Doc: "What the names of all Redis keys begin with; brokers with the same prefix are one cluster."},
	{Name: "muster.redis.layout", Type: String, Default: TransactionalLayout, OneOf: RedisLayouts(), Doc: "Default of the topic setting of the same name."},
	{Name: "muster.redis.sequence.bits", Type: Int, Default: "10", Min: 1, Max: 20, Doc: "Default of the topic setting of the same name."},
	{Name: "broker.session.timeout.ms", Type: Int, Default: "9000", Min: 100, Max: 1<<31 - 1, Static: true, Doc: "How long a broker that shares its store may be silent before the others take over its partitions."},
	{Name: "broker.heartbeat.interval.ms", Type: Int, Default: "2000", Min: 10, Max: 1<<31 - 1, Static: true, Doc: "How often a broker that shares its store says that it is alive."},
	{Name: "muster.brokers.drained", Type: List, Doc: "The ids of brokers that lead no partitions while others can. Set it with muster brokers drain and undrain, not at start."},
	{Name: "muster.acks.all.flush", Type: Boolean, Default: "true", Doc: "Whether acks=all is answered only after the records are on the disk. false is Kafka's own rule: the page cache is enough."},
	{Name: "socket.request.max.bytes", Type: Int, Default: "104857600", Min: 1024, Max: 1<<31 - 1, Static: true, Doc: "The largest request that is read."},
	{Name: "connections.max.idle.ms", Type: Long, Default: "600000", Static: true, Doc: "Connections without a request for this long are closed; 0 or less for never."},
	{Name: "max.connections", Type: Int, Default: "2147483647", Min: 1, Max: 1<<31 - 1, Doc: "The most connections at a time."},
	{Name: "max.connections.per.ip", Type: Int, Default: "2147483647", Min: 1, Max: 1<<31 - 1, Doc: "The most connections at a time from one address."},
	{Name: "num.partitions", Type: Int, Default: "1", Min: 1, Max: 10000, Doc: "Partitions of a topic that is created without saying how many."},
	{Name: "default.replication.factor", Type: Short, Default: "1", Min: 1, Max: 1<<15 - 1, Inert: true, Doc: "Accepted for Kafka's configuration files; has no effect. A partition has one replica: a lone broker keeps it on its disk, and brokers that share a Redis leave replication to Redis."},
	{Name: "auto.create.topics.enable", Type: Boolean, Default: "true", Doc: "Whether asking for a topic that does not exist creates it."},
	{Name: "delete.topic.enable", Type: Boolean, Default: "true", Doc: "Whether topics can be deleted."},
	{Name: "fetch.max.bytes", Type: Int, Default: "57671680", Min: 1024, Max: 1<<31 - 1, Doc: "The largest fetch answer, whatever the client asks for."},
	{Name: "max.incremental.fetch.session.cache.slots", Type: Int, Default: "1000", Min: 0, Max: 1 << 20, Static: true, Doc: "How many incremental fetch sessions are remembered."},
	{Name: "producer.id.expiration.ms", Type: Int, Default: "86400000", Min: 1, Max: 1<<31 - 1, Doc: "How long the state of an idle idempotent producer is kept."},
	{Name: "log.retention.check.interval.ms", Type: Long, Default: "300000", Min: 1, Doc: "How often retention is applied.", Static: true},
	{Name: "log.cleaner.backoff.ms", Type: Long, Default: "15000", Min: 1, Doc: "How often it is checked whether a log wants compaction."},
	{Name: "log.flush.scheduler.interval.ms", Type: Long, Default: "1000", Min: 1, Static: true, Doc: "How often records written with acks=0 or 1 are put on the disk in the background."},

	{Name: "log.retention.ms", Type: Long, Default: "604800000", Min: -1, Fallbacks: []Fallback{{"log.retention.minutes", minute}, {"log.retention.hours", hour}}, Doc: "Default of retention.ms."},
	{Name: "log.retention.minutes", Type: Int, Doc: "log.retention.ms in minutes."},
	{Name: "log.retention.hours", Type: Int, Default: "168", Doc: "log.retention.ms in hours."},
	{Name: "log.retention.bytes", Type: Long, Default: "-1", Min: -1, Doc: "Default of retention.bytes."},
	{Name: "log.segment.bytes", Type: Int, Default: "1073741824", Min: 1 << 14, Max: 1<<31 - 1, Doc: "Default of segment.bytes."},
	{Name: "log.roll.ms", Type: Long, Default: "604800000", Min: 1, Fallbacks: []Fallback{{"log.roll.hours", hour}}, Doc: "Default of segment.ms."},
	{Name: "log.roll.hours", Type: Int, Default: "168", Min: 1, Max: 1 << 30, Doc: "log.roll.ms in hours."},
	{Name: "log.index.interval.bytes", Type: Int, Default: "4096", Min: 0, Max: 1<<31 - 1, Doc: "Default of index.interval.bytes."},
	{Name: "log.cleanup.policy", Type: List, Default: "delete", OneOf: []string{"delete", "compact"}, Doc: "Default of cleanup.policy."},
	{Name: "log.cleaner.min.cleanable.ratio", Type: Double, Default: "0.5", Min: 0, Max: 1, Doc: "Default of min.cleanable.dirty.ratio."},
	{Name: "log.cleaner.delete.retention.ms", Type: Long, Default: "86400000", Min: 0, Max: maxLong, Doc: "Default of delete.retention.ms."},
	{Name: "log.cleaner.min.compaction.lag.ms", Type: Long, Default: "0", Min: 0, Max: maxLong, Doc: "Default of min.compaction.lag.ms."},
	{Name: "log.cleaner.max.compaction.lag.ms", Type: Long, Default: "9223372036854775807", Min: 1, Doc: "Default of max.compaction.lag.ms."},
	{Name: "log.message.timestamp.type", Type: String, Default: "CreateTime", OneOf: []string{"CreateTime", "LogAppendTime"}, Doc: "Default of message.timestamp.type."},
	{Name: "log.message.timestamp.before.max.ms", Type: Long, Default: "9223372036854775807", Min: 0, Max: maxLong, Doc: "Default of message.timestamp.before.max.ms."},
	{Name: "log.message.timestamp.after.max.ms", Type: Long, Default: "3600000", Min: 0, Max: maxLong, Doc: "Default of message.timestamp.after.max.ms."},
	{Name: "message.max.bytes", Type: Int, Default: "1048588", Min: 0, Max: 1<<31 - 1, Doc: "Default of max.message.bytes."},
	{Name: "min.insync.replicas", Type: Int, Default: "1", Min: 1, Max: 1<<31 - 1, Doc: "Default of the topic setting of the same name."},
	{Name: "compression.type", Type: String, Default: "producer", OneOf: compressionTypes, Doc: "Default of the topic setting of the same name."},
	{Name: "compression.gzip.level", Type: Int, Default: "-1", OneOf: gzipLevels, Doc: "Default of the topic setting of the same name."},
	{Name: "compression.lz4.level", Type: Int, Default: "9", Min: 1, Max: 17, Doc: "Default of the topic setting of the same name."},
	{Name: "compression.zstd.level", Type: Int, Default: "3", Min: -131072, Max: 22, Doc: "Default of the topic setting of the same name."},

	{Name: "group.initial.rebalance.delay.ms", Type: Int, Default: "3000", Min: 0, Max: 1<<31 - 1, Doc: "How long the first rebalance of an empty group waits for more members."},
	{Name: "group.min.session.timeout.ms", Type: Int, Default: "6000", Min: 1, Max: 1<<31 - 1, Doc: "The shortest session timeout that a member may ask for."},
	{Name: "group.max.session.timeout.ms", Type: Int, Default: "1800000", Min: 1, Max: 1<<31 - 1, Doc: "The longest session timeout that a member may ask for."},
	{Name: "group.max.size", Type: Int, Default: "2147483647", Min: 1, Max: 1<<31 - 1, Doc: "The most members that a group may have."},
	{Name: "muster.groups.max.bytes", Type: Int, Default: "268435456", Min: 1, Max: 1 << 62, Doc: "How many bytes the members of all groups that this broker coordinates may say of themselves: metadata, subscriptions, ids. A member that finds no room is told COORDINATOR_NOT_AVAILABLE, and tries again."},
	{Name: "group.consumer.session.timeout.ms", Type: Int, Default: "45000", Min: 1, Max: 1<<31 - 1, Doc: "How long a member of a consumer group may be silent."},
	{Name: "group.consumer.heartbeat.interval.ms", Type: Int, Default: "5000", Min: 1, Max: 1<<31 - 1, Doc: "How often a member of a consumer group is to be heard of."},
	{Name: "group.consumer.assignment.interval.ms", Type: Int, Default: "1000", Min: 0, Max: 15000, Doc: "How long a consumer group rests between two assignments, so that members who come together are assigned together."},
	{Name: "group.consumer.min.session.timeout.ms", Type: Int, Default: "45000", Min: 1, Max: 1<<31 - 1, Doc: "The least that a consumer group may have as its own consumer.session.timeout.ms."},
	{Name: "group.consumer.max.session.timeout.ms", Type: Int, Default: "60000", Min: 1, Max: 1<<31 - 1, Doc: "The most that a consumer group may have as its own consumer.session.timeout.ms."},
	{Name: "group.consumer.min.heartbeat.interval.ms", Type: Int, Default: "5000", Min: 1, Max: 1<<31 - 1, Doc: "The least that a consumer group may have as its own consumer.heartbeat.interval.ms."},
	{Name: "group.consumer.max.heartbeat.interval.ms", Type: Int, Default: "15000", Min: 1, Max: 1<<31 - 1, Doc: "The most that a consumer group may have as its own consumer.heartbeat.interval.ms."},
	{Name: "group.consumer.min.assignment.interval.ms", Type: Int, Default: "0", Min: 0, Max: 15000, Doc: "The least that a consumer group may have as its own consumer.assignment.interval.ms."},
	{Name: "group.consumer.max.assignment.interval.ms", Type: Int, Default: "15000", Min: 0, Max: 15000, Doc: "The most that a consumer group may have as its own consumer.assignment.interval.ms."},
	{Name: "group.share.session.timeout.ms", Type: Int, Default: "45000", Min: 1, Max: 1<<31 - 1, Doc: "How long a member of a share group may be silent."},
	{Name: "group.share.heartbeat.interval.ms", Type: Int, Default: "5000", Min: 1, Max: 1<<31 - 1, Doc: "How often a member of a share group is to be heard of."},
	{Name: "group.share.assignment.interval.ms", Type: Int, Default: "1000", Min: 0, Max: 15000, Doc: "How long a share group rests between two assignments, so that members who come together are assigned together."},
	{Name: "group.share.record.lock.duration.ms", Type: Int, Default: "30000", Min: 1, Max: 1<<31 - 1, Doc: "How long a record is locked for the member of a share group that it was delivered to."},
	{Name: "group.share.delivery.count.limit", Type: Int, Default: "5", Min: 1, Max: 1<<15 - 1, Doc: "How often a record is delivered at most in a share group."},
	{Name: "group.share.partition.max.record.locks", Type: Int, Default: "2000", Min: 1, Max: 1<<31 - 1, Doc: "How many records of a partition may be delivered in a share group and not yet done with."},
	{Name: "group.share.max.size", Type: Int, Default: "200", Min: 1, Max: 1<<31 - 1, Doc: "The most members that a share group may have."},
	{Name: "group.share.max.share.sessions", Type: Int, Default: "2000", Min: 1, Max: 1<<31 - 1, Static: true, Doc: "The most members of share groups that may fetch from the broker."},
	{Name: "group.share.min.session.timeout.ms", Type: Int, Default: "45000", Min: 1, Max: 1<<31 - 1, Doc: "The least that a share group may have as its own share.session.timeout.ms."},
	{Name: "group.share.max.session.timeout.ms", Type: Int, Default: "60000", Min: 1, Max: 1<<31 - 1, Doc: "The most that a share group may have as its own share.session.timeout.ms."},
	{Name: "group.share.min.heartbeat.interval.ms", Type: Int, Default: "5000", Min: 1, Max: 1<<31 - 1, Doc: "The least that a share group may have as its own share.heartbeat.interval.ms."},
	{Name: "group.share.max.heartbeat.interval.ms", Type: Int, Default: "15000", Min: 1, Max: 1<<31 - 1, Doc: "The most that a share group may have as its own share.heartbeat.interval.ms."},
	{Name: "group.share.min.assignment.interval.ms", Type: Int, Default: "0", Min: 0, Max: 15000, Doc: "The least that a share group may have as its own share.assignment.interval.ms."},
	{Name: "group.share.max.assignment.interval.ms", Type: Int, Default: "15000", Min: 0, Max: 15000, Doc: "The most that a share group may have as its own share.assignment.interval.ms."},
	{Name: "group.share.min.record.lock.duration.ms", Type: Int, Default: "15000", Min: 1, Max: 1<<31 - 1, Doc: "The least that a share group may have as its own share.record.lock.duration.ms."},
	{Name: "group.share.max.record.lock.duration.ms", Type: Int, Default: "60000", Min: 1, Max: 1<<31 - 1, Doc: "The most that a share group may have as its own share.record.lock.duration.ms."},
	{Name: "group.share.min.delivery.count.limit", Type: Int, Default: "2", Min: 1, Max: 1<<15 - 1, Doc: "The least that a share group may have as its own share.delivery.count.limit."},
	{Name: "group.share.max.delivery.count.limit", Type: Int, Default: "10", Min: 1, Max: 1<<15 - 1, Doc: "The most that a share group may have as its own share.delivery.count.limit."},
	{Name: "group.share.min.partition.max.record.locks", Type: Int, Default: "100", Min: 1, Max: 1<<31 - 1, Doc: "The least that a share group may have as its own share.partition.max.record.locks."},
	{Name: "group.share.max.partition.max.record.locks", Type: Int, Default: "4000", Min: 1, Max: 1<<31 - 1, Doc: "The most that a share group may have as its own share.partition.max.record.locks."},
	{Name: "group.consumer.max.size", Type: Int, Default: "2147483647", Min: 1, Max: 1<<31 - 1, Doc: "The most members that a consumer group may have."},
	{Name: "group.consumer.migration.policy", Type: String, Default: "bidirectional", OneOf: []string{"bidirectional", "upgrade", "downgrade", "disabled"}, Doc: "Whether groups with members go over from the classic to the consumer protocol when a member of that joins (upgrade), and back when the last one leaves (downgrade)."},
	{Name: "offsets.retention.minutes", Type: Int, Default: "10080", Min: 1, Max: 1<<31 - 1, Doc: "How long committed offsets are kept once they are unused."},
	{Name: "offsets.retention.check.interval.ms", Type: Long, Default: "600000", Min: 1, Doc: "How often expired offsets and empty groups are removed."},
	{Name: "offset.metadata.max.bytes", Type: Int, Default: "4096", Min: 0, Max: 1<<31 - 1, Doc: "The longest text that may be committed with an offset."},
	{Name: "offsets.topic.num.partitions", Type: Int, Default: "50", Min: 1, Max: 10000, Static: true, Doc: "Partitions of __consumer_offsets when it is created."},
	{Name: "offsets.topic.segment.bytes", Type: Int, Default: "104857600", Min: 1 << 14, Max: 1<<31 - 1, Static: true, Doc: "segment.bytes of __consumer_offsets when it is created."},
	{Name: "muster.group.journal.retention.ms", Type: Long, Default: "604800000", Min: -1, Static: true, Doc: "retention.ms of __group_journal when it is created: how long muster groups explain and history look back."},
	{Name: "muster.group.history.max.bytes", Type: Long, Default: "134217728", Min: 0, Static: true, Doc: "How much memory the history of lag takes. What rests longest is forgotten first, partitions before groups."},

	{Name: "transactional.id.expiration.ms", Type: Int, Default: "604800000", Min: 1, Max: 1<<31 - 1, Doc: "How long an unused transactional id is kept."},
	{Name: "transaction.max.timeout.ms", Type: Int, Default: "900000", Min: 1, Max: 1<<31 - 1, Doc: "The longest timeout of transactions that a producer may ask for."},
	{Name: "transaction.abort.timed.out.transaction.cleanup.interval.ms", Type: Int, Default: "10000", Min: 1, Max: 1<<31 - 1, Doc: "How often transactions are aborted whose time is up."},
	{Name: "transaction.remove.expired.transaction.cleanup.interval.ms", Type: Int, Default: "3600000", Min: 1, Max: 1<<31 - 1, Doc: "How often unused transactional ids are removed."},
	{Name: "transaction.state.log.num.partitions", Type: Int, Default: "50", Min: 1, Max: 10000, Static: true, Doc: "Partitions of __transaction_state when it is created."},
	{Name: "transaction.state.log.segment.bytes", Type: Int, Default: "104857600", Min: 1 << 14, Max: 1<<31 - 1, Static: true, Doc: "segment.bytes of __transaction_state when it is created."},
	{Name: "muster.transaction.journal.retention.ms", Type: Long, Default: "604800000", Min: -1, Static: true, Doc: "retention.ms of __transaction_journal when it is created: how long muster txns history looks back."},
	{Name: "muster.audit.enable", Type: Boolean, Default: "true", Static: true, Doc: "Whether logins, denials and changes are written to __audit_log, with who did it."},
	{Name: "muster.audit.retention.ms", Type: Long, Default: "2592000000", Min: -1, Static: true, Doc: "retention.ms of __audit_log when it is created: how long muster audit looks back."},
	{Name: "muster.transaction.orphan.grace.ms", Type: Long, Default: "300000", Min: 1, Doc: "How much longer than transaction.max.timeout.ms a transaction may be open in a partition before its leader asks all coordinators for it, and aborts it if none knows it."},
	{Name: "muster.transaction.orphan.check.interval.ms", Type: Long, Default: "60000", Min: 1, Static: true, Doc: "How often partitions are searched for such transactions."},

	inert("process.roles"), inert("controller.quorum.voters"), inert("controller.quorum.bootstrap.servers"), inert("controller.listener.names"),
	inert("security.inter.broker.protocol"), inert("zookeeper.connect"),
	inert("queued.max.requests"), inert("socket.send.buffer.bytes"), inert("socket.receive.buffer.bytes"), inert("log.cleaner.enable"),
	inert("auto.leader.rebalance.enable"), inert("replica.lag.time.max.ms"),
	inert("controlled.shutdown.enable"), inert("metadata.log.dir"), inert("share.coordinator.state.topic.replication.factor"),
	inert("share.coordinator.state.topic.min.isr"),
	inertNow("num.network.threads", Int, "3", 1), inertNow("num.io.threads", Int, "8", 1), inertNow("num.recovery.threads.per.data.dir", Int, "2", 1),
	inertNow("num.replica.fetchers", Int, "1", 1), inertNow("background.threads", Int, "10", 1), inertNow("log.cleaner.threads", Int, "1", 0),
	inertNow("log.cleaner.dedupe.buffer.size", Long, "134217728", 0), inertNow("log.cleaner.io.buffer.size", Int, "524288", 0),
	inertNow("log.flush.interval.messages", Long, "9223372036854775807", 1), inertNow("log.flush.interval.ms", Long, "", 0),
	inertNow("log.segment.delete.delay.ms", Long, "60000", 0), inertNow("log.preallocate", Boolean, "false", 0),
	inertNow("unclean.leader.election.enable", Boolean, "false", 0),
	inert("offsets.topic.replication.factor"), inert("transaction.state.log.replication.factor"), inert("transaction.state.log.min.isr"),
}, slices.Concat(securityDefs, metricsDefs, unservedDefs())...))

func inert(name string) Def {
	return Def{Name: name, Type: String, Static: true, Inert: true, Doc: "Accepted for Kafka's configuration files; has no effect."}
}

// inertNow is inert for a setting that Kafka lets one alter at run time.
func inertNow(name string, t Type, value string, least float64) Def {
	d := Def{Name: name, Type: t, Default: value, Inert: true, Doc: "Accepted for Kafka's tools; has no effect."}
	if least > 0 {
		d.Min, d.Max = least, maxLong
	}
	return d
}
