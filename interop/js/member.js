// A member of a group with KafkaJS, driven by the tests in ../go (see
// groups_member_test.go there): it is told what to do in JSON in an environment
// variable, reports in lines of JSON on standard output, and leaves the group
// when a line "leave" comes on standard input.
'use strict'

const readline = require('node:readline')
const { Kafka, PartitionAssigners, logLevel } = require('kafkajs')

const spec = JSON.parse(process.env.MUSTER_GROUP_MEMBER)
const assigners = { roundrobin: PartitionAssigners.roundRobin }

// A write to a pipe is done when it returns, so a crash cannot take it back.
const report = (event, fields) => process.stdout.write(JSON.stringify({ event, ...fields }) + '\n')

const note = ({ log: { message, error } }) => report('note', { text: `${message} ${error ?? ''}` })

const kafka = new Kafka({
  brokers: [spec.addr],
  clientId: spec.clientId,
  logLevel: logLevel.WARN,
  logCreator: () => note,
})

const consumer = kafka.consumer({
  groupId: spec.group,
  partitionAssigners: [assigners[spec.assignor]],
  sessionTimeout: spec.sessionMillis,
  heartbeatInterval: spec.heartbeatMillis,
  rebalanceTimeout: spec.rebalanceMillis,
  maxWaitTimeInMs: 250,
  allowAutoTopicCreation: false,
})

// KafkaJS tells what it was given, and not when that ends: at the latest when it
// joins again.
let owned = []

const revoke = () => {
  if (owned.length > 0) report('revoked', { partitions: owned })
  owned = []
}

consumer.on(consumer.events.REBALANCING, revoke)
consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  revoke()
  owned = payload.memberAssignment[spec.topic] ?? []
  report('assigned', { partitions: owned })
})

let heartbeats = 0
consumer.on(consumer.events.HEARTBEAT, () => report('heartbeats', { count: ++heartbeats }))

consumer.on(consumer.events.CRASH, ({ payload }) => {
  if (payload.restart) {
    report('note', { text: `crash: ${payload.error}` })
  } else {
    report('failed', { text: `crash: ${payload.error}` })
    process.exit(1)
  }
})

let leaving = false

const commands = readline.createInterface({ input: process.stdin })
commands.on('line', async line => {
  if (line.trim() !== 'leave') return
  leaving = true
  await consumer.disconnect()
  report('left')
  process.exit(0)
})
commands.on('close', () => {
  if (!leaving) process.exit(1) // The test is gone.
})

const run = async () => {
  await consumer.connect()
  await consumer.subscribe({ topics: [spec.topic], fromBeginning: true })
  await consumer.run({
    autoCommitInterval: 200,
    eachMessage: async ({ partition, message }) => {
      report('records', { partition, offsets: [Number(message.offset)] })
    },
  })
}

run().catch(error => {
  report('failed', { text: String(error) })
  process.exit(1)
})
