package config

import "strings"

// unserved are the broker settings of Kafka 3.9 to 4.3 that have no effect here. They are
// accepted, and told once at the start, so that a configuration file of Kafka's can be used
// as it is: what it says of replication, the quorum, tiered storage, threads, ZooKeeper,
// Kerberos and classes of Java has nothing that it could change.
const unserved = `
	add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
	alter.config.policy.class.name alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
	auto.include.jmx.reporter
	broker.id.generation.enable
	client.quota.callback.class
	config.providers
	control.plane.listener.name
	controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms
	controller.performance.always.log.threshold.ms controller.performance.sample.period.ms controller.quorum.append.linger.ms
	controller.quorum.auto.join.enable controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
	controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms
	controller.socket.timeout.ms
	cordoned.log.dirs
	create.topic.policy.class.name
	delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms delegation.token.max.lifetime.ms
	delete.records.purgatory.purge.interval.requests
	early.start.listeners
	eligible.leader.replicas.enable
	fetch.purgatory.purge.interval.requests
	follower.fetch.last.tiered.offset.enable
	group.consumer.assignors group.consumer.regex.refresh.interval.ms group.coordinator.append.linger.ms group.coordinator.background.threads
	group.coordinator.cached.buffer.max.bytes group.coordinator.new.enable group.coordinator.rebalance.protocols group.coordinator.threads
	group.share.assignors group.share.enable group.share.initialize.retry.interval.ms group.share.max.groups group.share.persister.class.name
	initial.broker.registration.timeout.ms
	inter.broker.protocol.version
	internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes internal.metadata.max.batch.size.in.bytes
	internal.metadata.max.fetch.size.in.bytes
	kafka.metrics.polling.interval.secs kafka.metrics.reporters
	leader.imbalance.check.interval.seconds leader.imbalance.per.broker.percentage
	log.cleaner.io.buffer.load.factor log.cleaner.io.max.bytes.per.second log.dir.failure.timeout.ms log.flush.offset.checkpoint.interval.ms
	log.flush.start.offset.checkpoint.interval.ms log.index.size.max.bytes log.initial.task.delay.ms log.local.retention.bytes log.local.retention.ms
	log.message.downconversion.enable log.message.format.version log.message.timestamp.difference.max.ms log.roll.jitter.hours log.roll.jitter.ms
	max.request.partition.size.limit
	metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.min.bytes
	metadata.log.segment.ms metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms
	metric.reporters
	metrics.num.samples metrics.recording.level metrics.sample.window.ms
	num.replica.alter.log.dirs.threads
	offsets.commit.required.acks offsets.commit.timeout.ms offsets.load.buffer.size offsets.topic.compression.codec
	password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length password.encoder.keyfactory.algorithm
	principal.builder.class
	producer.id.expiration.check.interval.ms producer.purgatory.purge.interval.requests
	queued.max.request.bytes
	remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms
	remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
	remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
	remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
	remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
	remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
	remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
	remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads remote.log.storage.manager.class.name
	remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix remote.log.storage.system.enable
	replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
	replica.high.watermark.checkpoint.interval.ms replica.selector.class replica.socket.receive.buffer.bytes replica.socket.timeout.ms
	replication.quota.window.num replication.quota.window.size.seconds
	request.timeout.ms
	reserved.broker.max.id
	sasl.client.callback.handler.class sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
	sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
	sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
	sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
	sasl.mechanism.controller.protocol sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
	sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
	sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
	sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
	sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
	security.providers
	server.max.startup.time.ms
	share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes share.coordinator.load.buffer.size
	share.coordinator.state.topic.compression.codec share.coordinator.threads share.coordinator.write.timeout.ms share.fetch.max.fetch.records share.fetch.purgatory.purge.interval.requests
	socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms socket.listen.backlog.size
	ssl.allow.dn.changes ssl.allow.san.changes ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.keymanager.algorithm ssl.provider
	ssl.secure.random.implementation ssl.trustmanager.algorithm
	telemetry.max.bytes
	transaction.partition.verification.enable transaction.state.log.load.buffer.size transaction.two.phase.commit.enable
	unclean.leader.election.interval.ms
	unstable.api.versions.enable unstable.feature.versions.enable
	zookeeper.clientCnxnSocket zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests zookeeper.metadata.migration.enable
	zookeeper.metadata.migration.min.batch.size zookeeper.session.timeout.ms zookeeper.set.acl zookeeper.ssl.cipher.suites zookeeper.ssl.client.enable
	zookeeper.ssl.crl.enable zookeeper.ssl.enabled.protocols zookeeper.ssl.endpoint.identification.algorithm zookeeper.ssl.keystore.location
	zookeeper.ssl.keystore.type zookeeper.ssl.ocsp.enable zookeeper.ssl.protocol zookeeper.ssl.truststore.location zookeeper.ssl.truststore.type
`

// unservedSecrets are those of them that hold a password or a key, and are never shown.
const unservedSecrets = `
	delegation.token.master.key
	delegation.token.secret.key
	password.encoder.old.secret
	password.encoder.secret
	sasl.oauthbearer.assertion.private.key.passphrase
	sasl.oauthbearer.client.credentials.client.secret
	ssl.keystore.certificate.chain
	ssl.keystore.key
	ssl.truststore.certificates
	zookeeper.ssl.keystore.password
	zookeeper.ssl.truststore.password
`

// unservedDefs makes definitions of them. Kafka lets those of TLS and SASL be set for one listener.
func unservedDefs() (defs []Def) {
	for t, names := range map[Type]string{String: unserved, Password: unservedSecrets} {
		for name := range strings.FieldsSeq(names) {
			d := inert(name)
			d.Type = t
			if strings.HasPrefix(name, "ssl.") || strings.HasPrefix(name, "sasl.") || name == "principal.builder.class" {
				d.Scope = Mechanism
			}
			defs = append(defs, d)
		}
	}
	return defs
}

// unservedOfListener says whether what follows the name of a listener is a setting that
// Kafka has for single listeners, and muster has not: limits of their own, and Kerberos.
func unservedOfListener(name string) bool {
	switch name {
	case "max.connections", "max.connection.creation.rate", "num.network.threads", "queued.max.requests":
		return true
	}
	return strings.HasPrefix(name, "gssapi.")
}

// unservedPrefix says whether a name is one that Kafka hands to a class of Java: those of
// tiered storage, and of what looks up values.
func unservedPrefix(name string) bool {
	return strings.HasPrefix(name, "rsm.config.") || strings.HasPrefix(name, "rlmm.config.") || strings.HasPrefix(name, "config.providers.")
}
