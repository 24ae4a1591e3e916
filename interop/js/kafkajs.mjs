// KafkaJS against the broker that the first argument names.

import kafkajs from 'kafkajs'
import { assert, broker, end, records, run, same, shared, until, version } from './check.mjs'

const { CompressionTypes, ConfigResourceTypes, Kafka, PartitionAssigners, Partitioners, logLevel } = kafkajs

const partitions = 4
const kafka = new Kafka({ clientId: 'kafkajs', brokers: [broker], logLevel: logLevel.NOTHING })
const admin = kafka.admin()

const createTopic = async (name, configEntries = []) => {
  const topic = `kafkajs-${name}`
  await admin.createTopics({ topics: [{ topic, numPartitions: partitions, replicationFactor: 1, configEntries }] })
  return topic
}

const write = async (topic, n, { idempotent = false, ...settings } = {}) => {
  const messages = records(n, partitions)
  const producer = kafka.producer({ idempotent, createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  await producer.send({ topic, messages: messages.map(m => ({ ...m, timestamp: `${m.timestamp}` })), ...settings })
  await producer.disconnect()
  return messages
}

// Member is a consumer in a group, from the beginning.
class Member {
  static async join(topic, settings = {}, runSettings = {}) {
    const m = new Member()
    m.records = []
    m.assigned = []
    m.consumer = kafka.consumer({ groupId: topic, heartbeatInterval: 200, maxWaitTimeInMs: 100, ...settings })
    m.consumer.on(m.consumer.events.GROUP_JOIN, ({ payload }) => (m.assigned = payload.memberAssignment[topic] ?? []))
    await m.consumer.connect()
    await m.consumer.subscribe({ topics: [topic], fromBeginning: true })
    await m.consumer.run({
      autoCommitInterval: 100,
      eachMessage: async ({ partition, message }) => {
        m.records.push({
          partition,
          key: `${message.key}`,
          value: `${message.value}`,
          timestamp: Number(message.timestamp),
          headers: { number: `${message.headers.number}`, empty: `${message.headers.empty}` },
          offset: message.offset,
        })
      },
      ...runSettings,
    })
    return m
  }

  owned() {
    return this.assigned
  }

  leave() {
    return this.consumer.disconnect()
  }
}

const roundTrip = async (name, settings) => {
  const topic = await createTopic(name)
  const written = await write(topic, 200, settings)
  const m = await Member.join(topic)
  await until('all read', () => m.records.length >= written.length)
  await m.leave()
  same(m.records, written)
}

const comeAndGo = async (name, assigner) => {
  const topic = await createTopic(`group-${name}`)
  const a = await Member.join(topic, { partitionAssigners: [assigner] })
  await shared([a], partitions)
  const b = await Member.join(topic, { partitionAssigners: [assigner] })
  await shared([a, b], partitions)
  await write(topic, 40)
  await until('all read', () => new Set([...a.records, ...b.records].map(r => r.value)).size === 40)
  await a.leave()
  await shared([b], partitions)
  await b.leave()
  const committed = await admin.fetchOffsets({ groupId: topic, topics: [topic] })
  const ends = await admin.fetchTopicOffsets(topic)
  const offsets = list => list.map(p => [p.partition, p.offset]).sort()
  assert.deepEqual(offsets(committed[0].partitions), offsets(ends))
}

const seekAndPause = async () => {
  const topic = await createTopic('seek')
  await write(topic, 40)
  const m = await Member.join(topic)
  await until('all read', () => m.records.length === 40)
  const fifth = m.records.filter(r => r.partition === 1)[5]
  m.records.length = 0
  m.consumer.pause([{ topic, partitions: [0] }])
  m.consumer.seek({ topic, partition: 0, offset: '0' })
  m.consumer.seek({ topic, partition: 1, offset: fifth.offset })
  await until('the rest of the partition read', () => m.records.length >= 5)
  assert.deepEqual(new Set(m.records.map(r => r.partition)), new Set([1]))
  m.consumer.resume([{ topic, partitions: [0] }])
  await until('the other read', () => m.records.length >= 15)
  await m.leave()
}

const manual = async () => {
  const topic = await createTopic('commit')
  await write(topic, 40)
  const m = await Member.join(topic, {}, { autoCommit: false })
  await until('all read', () => m.records.length === 40)
  const { offset } = m.records.find(r => r.partition === 2)
  await m.consumer.commitOffsets([{ topic, partition: 2, offset, metadata: 'first' }])
  await m.leave()
  const [committed] = await admin.fetchOffsets({ groupId: topic, topics: [topic] })
  const found = committed.partitions.find(p => p.partition === 2)
  assert.deepEqual([found.offset, found.metadata], [offset, 'first'])
}

const times = async () => {
  const topic = await createTopic('times')
  const written = await write(topic, 40)
  const found = await admin.fetchTopicOffsetsByTimestamp(topic, written[20].timestamp)
  const m = await Member.join(topic)
  await until('all read', () => m.records.length === 40)
  await m.leave()
  assert.equal(found.find(p => p.partition === 0).offset, m.records.find(r => r.value === written[20].value).offset)
}

const topics = async () => {
  const topic = await createTopic('admin', [{ name: 'retention.ms', value: '3600000' }])
  assert.equal(await admin.createTopics({ topics: [{ topic }] }), false)
  await admin.createPartitions({ topicPartitions: [{ topic, count: 6 }] })
  const metadata = await admin.fetchTopicMetadata({ topics: [topic] })
  assert.equal(metadata.topics[0].partitions.length, 6)
  const cluster = await admin.describeCluster()
  assert.equal(cluster.brokers.length, 1)
  const setting = async () => {
    const described = await admin.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }] })
    return described.resources[0].configEntries.find(e => e.configName === 'retention.ms').configValue
  }
  assert.equal(await setting(), '3600000')
  const configEntries = [{ name: 'retention.ms', value: '7200000' }]
  await admin.alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }] })
  assert.equal(await setting(), '7200000')
  await write(topic, 40)
  const high = (await admin.fetchTopicOffsets(topic)).find(p => p.partition === 0).high
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: high }] })
  const { low } = (await admin.fetchTopicOffsets(topic)).find(p => p.partition === 0)
  assert.equal(low, high)
  await admin.deleteTopics({ topics: [topic] })
  assert(!(await admin.listTopics()).includes(topic))
}

const groups = async () => {
  const topic = await createTopic('admin-groups')
  await write(topic, 40)
  const m = await Member.join(topic)
  await shared([m], partitions)
  const listed = (await admin.listGroups()).groups.map(g => g.groupId)
  assert(listed.includes(topic))
  const [described] = (await admin.describeGroups([topic])).groups
  assert.deepEqual([described.state, described.protocol, described.members.length], ['Stable', 'RoundRobinAssigner', 1])
  await until('all read', () => m.records.length === 40)
  await m.leave()
  await admin.resetOffsets({ groupId: topic, topic, earliest: true })
  await admin.setOffsets({ groupId: topic, topic, partitions: [{ partition: 0, offset: '7' }] })
  const [committed] = await admin.fetchOffsets({ groupId: topic, topics: [topic] })
  assert.equal(committed.partitions.find(p => p.partition === 0).offset, '7')
  await admin.deleteGroups([topic])
}

const transactionalProducer = async transactionalId => {
  const producer = kafka.producer({
    transactionalId,
    idempotent: true,
    maxInFlightRequests: 1,
    createPartitioner: Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  return producer
}

// sent sends records in a transaction, and returns them as they are read.
const sent = async (transaction, topic, n, name) => {
  const messages = records(n, partitions).map(m => ({ ...m, value: `${name}-${m.value}` }))
  await transaction.send({ topic, messages: messages.map(m => ({ ...m, timestamp: `${m.timestamp}` })) })
  return messages
}

// readOnce demands that a reader gets records, each once and in the order of their
// partition.
const readOnce = async (m, written) => {
  await until('all read', () => m.records.length >= written.length)
  for (let p = 0; p < partitions; p++) {
    const of = list => list.filter(r => r.partition === p).map(({ offset, ...record }) => record)
    assert.deepEqual(of(m.records), of(written))
  }
}

// committedAndAborted runs transactions in turns that are committed and aborted.
// KafkaJS consumers read what is committed, unless they are told otherwise.
const committedAndAborted = async () => {
  const topic = await createTopic('transactions')
  const producer = await transactionalProducer(topic)
  const committed = []
  const all = []
  for (let i = 0; i < 5; i++) {
    const transaction = await producer.transaction()
    const written = await sent(transaction, topic, 40, i)
    all.push(...written)
    if (i % 2) {
      await transaction.abort()
    } else {
      await transaction.commit()
      committed.push(...written)
    }
  }
  await producer.disconnect()
  const reader = await Member.join(topic)
  const any = await Member.join(topic, { groupId: `${topic}-any`, readUncommitted: true })
  await readOnce(any, all)
  await readOnce(reader, committed)
  await Promise.all([reader.leave(), any.leave()])
}

// withOffsets copies records from a topic to another, in transactions that hold
// the offsets too. The first one is aborted, and done again.
const withOffsets = async () => {
  const from = await createTopic('transactions-from')
  const to = await createTopic('transactions-to')
  const written = await write(from, 40)
  const producer = await transactionalProducer(to)
  let aborted = 0
  const eachBatch = async ({ batch }) => {
    const transaction = await producer.transaction()
    const offset = `${BigInt(batch.lastOffset()) + 1n}`
    const messages = batch.messages.map(m => ({ ...m, partition: batch.partition, value: `copy-${m.value}` }))
    await transaction.send({ topic: to, messages })
    await transaction.sendOffsets({
      consumerGroupId: from,
      topics: [{ topic: from, partitions: [{ partition: batch.partition, offset }] }],
    })
    if (!aborted++) {
      await transaction.abort()
      throw new Error('again')
    }
    await transaction.commit()
  }
  const settings = { autoCommit: false, eachBatch, eachMessage: undefined, eachBatchAutoResolve: true }
  const copier = await Member.join(from, { retry: { initialRetryTime: 50 } }, settings)
  const reader = await Member.join(to)
  await readOnce(reader, written.map(r => ({ ...r, value: `copy-${r.value}` })))
  await Promise.all([copier.leave(), reader.leave()])
  await producer.disconnect()
  const [committed] = await admin.fetchOffsets({ groupId: from, topics: [from] })
  const ends = await admin.fetchTopicOffsets(from)
  const offsets = list => list.map(p => [p.partition, p.offset]).sort()
  assert.deepEqual(offsets(committed.partitions), offsets(ends))
}

const fencing = async () => {
  const topic = await createTopic('transactions-fence')
  const first = await transactionalProducer(topic)
  const lost = await first.transaction()
  await sent(lost, topic, 40, 'lost')
  const second = await transactionalProducer(topic)
  const transaction = await second.transaction()
  const written = await sent(transaction, topic, 40, 'kept')
  await assert.rejects(lost.commit(), /epoch|fenced/i)
  await transaction.commit()
  await Promise.all([first.disconnect(), second.disconnect()])
  const reader = await Member.join(topic)
  await readOnce(reader, written)
  await reader.leave()
}

version('kafkajs')
await admin.connect()
for (const [name, acks] of [['0', 0], ['1', 1], ['all', -1]]) {
  await run(`produce: acks=${name}`, () => roundTrip(`acks-${name}`, { acks }))
}
await run('produce: idempotent', () => roundTrip('idempotent', { idempotent: true }))
await run('produce: gzip', () => roundTrip('gzip', { compression: CompressionTypes.GZIP }))
await run('consume: seek, pause and resume', seekAndPause)
await run('consume: offsets for times', times)
await run('commit: manual', manual)
await run('group: roundrobin, automatic commits', () => comeAndGo('roundrobin', PartitionAssigners.roundRobin))
await run('transactions: commit and abort', committedAndAborted)
await run('transactions: fencing by a second producer', fencing)
await run('transactions: consume, transform, produce', withOffsets)
await run('admin: topics, partitions, configs, records, offsets', topics)
await run('admin: groups and their offsets', groups)
end()
