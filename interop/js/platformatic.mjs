// @platformatic/kafka against the broker that the first argument names.

import { isDeepStrictEqual } from 'node:util'
import {
  Admin, ConfigResourceTypes, Consumer, FetchIsolationLevels, IncrementalAlterConfigOperationTypes, ListOffsetTimestamps, MessagesStreamModes,
  Producer, cooperativeStickyAssigner, roundRobinAssigner, stringDeserializers, stringSerializers,
} from '@platformatic/kafka'
import { assert, broker, end, records, run, same, shared, until, version } from './check.mjs'

const partitions = 4
const base = { clientId: 'platformatic', bootstrapBrokers: [broker] }
const admin = new Admin(base)

const createTopic = async (name, configs = []) => {
  const topic = `platformatic-${name}`
  await admin.createTopics({ topics: [topic], partitions, replicas: 1, configs })
  return topic
}

const write = async (topic, n, settings = {}) => {
  const messages = records(n, partitions)
  const producer = new Producer({ ...base, serializers: stringSerializers })
  await producer.send({ messages: messages.map(m => ({ ...m, topic, timestamp: BigInt(m.timestamp) })), acks: -1, ...settings })
  await producer.close()
  return messages
}

// Member is a consumer in a group, from the beginning if nothing is committed.
class Member {
  static async join(topic, settings = {}) {
    const m = new Member()
    m.topic = topic
    m.records = []
    const assigner = settings.partitionAssigner ?? roundRobinAssigner
    const name = assigner === cooperativeStickyAssigner ? 'cooperative-sticky' : 'roundrobin'
    m.consumer = new Consumer({
      ...base, groupId: topic, deserializers: stringDeserializers, heartbeatInterval: 200, maxWaitTime: 100,
      autocommit: 100, partitionAssigner: assigner, protocols: [{ name, version: 1 }], ...settings,
    })
    m.stream = await m.consumer.consume({ topics: [topic], mode: MessagesStreamModes.COMMITTED, fallbackMode: 'earliest', ...settings })
    m.stream.on('error', error => (m.error = error))
    m.stream.on('data', r => m.records.push({
      partition: r.partition, key: r.key, value: r.value, timestamp: Number(r.timestamp),
      headers: Object.fromEntries(r.headers), offset: r.offset,
    }))
    return m
  }

  owned() {
    return this.consumer.assignments?.find(a => a.topic === this.topic)?.partitions ?? []
  }

  leave() {
    return this.consumer.close(true)
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

const offsets = async (topic, timestamp) => {
  const asked = Array.from({ length: partitions }, (_, partitionIndex) => ({ partitionIndex, timestamp }))
  const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions: asked }] })
  return Object.fromEntries(found.partitions.map(p => [p.partitionIndex, p.offset]))
}

const committed = async topic => {
  const [group] = await admin.listConsumerGroupOffsets({ groups: [topic] })
  return Object.fromEntries((group.topics[0]?.partitions ?? []).map(p => [p.partitionIndex, p.committedOffset]))
}

const comeAndGo = async (name, partitionAssigner) => {
  const topic = await createTopic(`group-${name}`)
  const a = await Member.join(topic, { partitionAssigner })
  await shared([a], partitions)
  const b = await Member.join(topic, { partitionAssigner })
  await shared([a, b], partitions)
  await write(topic, 40)
  await until('all read', () => new Set([...a.records, ...b.records].map(r => r.value)).size === 40)
  const ends = await offsets(topic, ListOffsetTimestamps.LATEST)
  await until('all committed', async () => isDeepStrictEqual(await committed(topic), ends))
  await a.leave()
  await shared([b], partitions)
  await b.leave()
}

const manual = async () => {
  const topic = await createTopic('manual')
  await write(topic, 40)
  const m = await Member.join(topic, { autocommit: false })
  await until('all read', () => m.records.length === 40)
  const { offset } = m.records.find(r => r.partition === 2)
  await m.consumer.commit({ offsets: [{ topic, partition: 2, offset, leaderEpoch: 0 }] })
  await m.leave()
  assert.deepEqual(await committed(topic), { 2: offset })
  const next = await Member.join(topic, { autocommit: false })
  await until('all read again', () => next.records.length >= 40)
  await next.leave()
}

const times = async () => {
  const topic = await createTopic('times')
  const written = await write(topic, 40)
  const m = await Member.join(topic)
  await until('all read', () => m.records.length === 40)
  await m.leave()
  const found = await offsets(topic, BigInt(written[20].timestamp))
  assert.equal(found[0], m.records.find(r => r.value === written[20].value).offset)
}

// transactions runs transactions in turns that are committed and aborted. One is
// aborted: of what it fetches the client knows one aborted transaction of each
// producer.
const transactions = async () => {
  const topic = await createTopic('transactions')
  const producer = new Producer({ ...base, serializers: stringSerializers, transactionalId: topic, idempotent: true })
  const kept = []
  const all = []
  for (let i = 0; i < 3; i++) {
    const messages = records(40, partitions).map(m => ({ ...m, value: `${i}-${m.value}` }))
    const transaction = await producer.beginTransaction()
    await transaction.send({ messages: messages.map(m => ({ ...m, topic, timestamp: BigInt(m.timestamp) })) })
    all.push(...messages)
    if (i % 2) {
      await transaction.abort()
    } else {
      await transaction.commit()
      kept.push(...messages)
    }
  }
  await producer.close()
  for (const [isolationLevel, written] of [[FetchIsolationLevels.READ_COMMITTED, kept], [FetchIsolationLevels.READ_UNCOMMITTED, all]]) {
    const m = await Member.join(topic, { groupId: `${topic}-${isolationLevel}`, isolationLevel })
    await until('all read', () => m.records.length >= written.length)
    await m.leave()
    assert.equal(m.records.length, written.length)
    same(m.records, written)
  }
}

const topics = async () => {
  const topic = await createTopic('admin', [{ name: 'retention.ms', value: '3600000' }])
  await assert.rejects(createTopic('admin'))
  await admin.createPartitions({ topics: [{ name: topic, count: 6 }] })
  const metadata = await admin.metadata({ topics: [topic], forceUpdate: true })
  assert.equal(metadata.topics.get(topic).partitionsCount, 6)
  assert.equal(metadata.brokers.size, 1)
  const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: topic }
  const setting = async () => {
    const [described] = await admin.describeConfigs({ resources: [resource] })
    return described.configs.find(c => c.name === 'retention.ms').value
  }
  assert.equal(await setting(), '3600000')
  const change = { name: 'retention.ms', configOperation: IncrementalAlterConfigOperationTypes.SET, value: '7200000' }
  await admin.incrementalAlterConfigs({ resources: [{ ...resource, configs: [change] }] })
  assert.equal(await setting(), '7200000')
  await write(topic, 40)
  const ends = await offsets(topic, ListOffsetTimestamps.LATEST)
  await admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset: ends[0] }] }] })
  assert.equal((await offsets(topic, ListOffsetTimestamps.EARLIEST))[0], ends[0])
  const dirs = await admin.describeLogDirs({ topics: [{ name: topic, partitions: [0] }] })
  assert.equal(dirs[0].results[0].topics[0].name, topic)
  await admin.deleteTopics({ topics: [topic] })
  assert(!(await admin.listTopics()).includes(topic))
}

const groups = async () => {
  const topic = await createTopic('admin-groups')
  const m = await Member.join(topic)
  await shared([m], partitions)
  assert((await admin.listGroups({ states: ['Stable'] })).has(topic))
  const described = (await admin.describeGroups({ groups: [topic] })).get(topic)
  assert.deepEqual([described.state, described.protocol, described.members.size], ['Stable', 'roundrobin', 1])
  await m.leave()
  await admin.alterConsumerGroupOffsets({ groupId: topic, topics: [{ name: topic, partitionOffsets: [{ partition: 0, offset: 7n }] }] })
  assert.equal((await committed(topic))[0], 7n)
  await admin.deleteConsumerGroupOffsets({ groupId: topic, topics: [{ name: topic, partitionIndexes: [0] }] })
  assert.equal((await committed(topic))[0], undefined)
  await admin.deleteGroups({ groups: [topic] })
  assert(!(await admin.listGroups()).has(topic))
}

version('@platformatic/kafka')
for (const [name, acks] of [['0', 0], ['1', 1], ['all', -1]]) {
  await run(`produce: acks=${name}`, () => roundTrip(`acks-${name}`, { acks }))
}
await run('produce: idempotent', () => roundTrip('idempotent', { idempotent: true }))
for (const compression of ['gzip', 'snappy', 'lz4', 'zstd']) {
  await run(`produce: ${compression}`, () => roundTrip(compression, { compression }))
}
await run('consume: offsets for times', times)
await run('commit: manual', manual)
await run('group: roundrobin, automatic commits', () => comeAndGo('roundrobin', roundRobinAssigner))
await run('group: cooperative-sticky, automatic commits', () => comeAndGo('cooperative-sticky', cooperativeStickyAssigner))
await run('transactions: commit and abort', transactions)
await run('admin: topics, partitions, configs, records, offsets, log dirs', topics)
await run('admin: groups and their offsets', groups)
end()
