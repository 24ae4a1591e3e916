// KafkaJS logs in to the broker of which interop/matrix/secured.go tells.

import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import kafkajs from 'kafkajs'
import { assert, end, run, until, version } from './check.mjs'

const scram256 = createRequire(import.meta.url)('kafkajs/src/broker/saslAuthenticator/scram256')
const { Kafka, Partitioners, logLevel } = kafkajs

const prefix = 'kafkajs-login'
const user = `${prefix}-ann`
const password = 'über, =2C' // Letters and signs that mechanisms treat in ways of their own.
const count = 20
const tokenSeconds = 4
const mechanisms = ['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer']

const env = name => process.env[`MUSTER_MATRIX_${name}`]

// muster runs a command of muster as the user who may do everything.
const adminPassword = join(tmpdir(), 'kafkajs-admin-password')
const muster = (args, given = '') =>
  new Promise((resolve, reject) => {
    const loggedIn = { MUSTER_BROKER: env('SASL_PLAINTEXT'), MUSTER_USER: 'admin', MUSTER_PASSWORD_FILE: adminPassword }
    const child = execFile(join('bin', 'muster'), args, { env: { ...process.env, ...loggedIn } }, (error, out, err) =>
      error ? reject(new Error(`muster ${args.join(' ')}: ${err}`)) : resolve(out))
    child.stdin.end(given)
  })

const allow = name => Promise.all(['topic', 'group'].map(kind => muster(['acls', 'add', '--prefixed', name, 'all', kind, prefix])))

const createUser = name => muster(['users', 'create', name], password)

const token = async (name, seconds = 3600, audience = 'muster') => {
  const answer = await fetch(`${env('TOKENS')}?sub=${name}&for=${seconds}s&aud=${audience}`)
  return { value: (await answer.json()).access_token }
}

// Client is KafkaJS with a login, whose connections and logins are counted.
class Client {
  constructor(listener, sasl, { certificate = env('CERTIFICATE'), ...settings } = {}) {
    this.connections = 0
    this.logins = 0
    const secure = listener === 'SASL_SSL' || listener === 'SSL'
    const own = sasl ? {} : { cert: readFileSync(certificate), key: readFileSync(certificate) }
    this.kafka = new Kafka({
      clientId: prefix, brokers: [env(listener)], logLevel: logLevel.NOTHING, sasl,
      // By default it logs in again when a session has ten seconds left, which these do not have.
      reauthenticationThreshold: 1000,
      connectionTimeout: 30_000,
      socketFactory: ({ host, port, ssl, onConnect }) => {
        this.connections++
        return ssl ? tls.connect({ host, port, ...ssl }, onConnect) : net.connect({ host, port }, onConnect)
      },
      ...(secure ? { ssl: { ca: [readFileSync(env('CA'))], ...own } } : {}), ...settings,
    })
  }

  // watch counts the logins of a producer or consumer.
  watch(member) {
    member.on(member.events.REQUEST, ({ payload }) => {
      if (payload.apiName === 'SaslHandshake') this.logins++
    })
    return member
  }

  producer(settings = {}) {
    return this.watch(this.kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, ...settings }))
  }

  consumer(groupId) {
    return this.watch(this.kafka.consumer({ groupId, heartbeatInterval: 200, maxWaitTimeInMs: 100 }))
  }

  // inPlace is how often it has logged in on a connection that it had.
  inPlace() {
    return this.logins - this.connections
  }

  async createTopic(topic) {
    const admin = this.kafka.admin()
    await admin.connect()
    await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }] })
    await admin.disconnect()
  }
}

const sasl = (mechanism, name = user, secret = password) =>
  mechanism === 'oauthbearer' ? { mechanism, oauthBearerProvider: () => token(name) } : { mechanism, username: name, password: secret }

// reads has a consumer hand over the values of a topic, with their offsets.
const reads = async (consumer, topic, got) => {
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({ autoCommitInterval: 200, eachMessage: async ({ message }) => got(`${message.value}`, BigInt(message.offset)) })
}

const roundTrip = async (topic, listener, mechanism) => {
  const client = new Client(listener, mechanism && sasl(mechanism))
  await client.createTopic(topic)
  const producer = client.producer({ idempotent: true })
  await producer.connect()
  const written = Array.from({ length: count }, (_, i) => `${i}`)
  for (const value of written) await producer.send({ topic, messages: [{ value }] })
  await producer.disconnect()
  const consumer = client.consumer(topic)
  const got = []
  let last
  await reads(consumer, topic, (value, offset) => {
    got.push(value)
    last = offset
  })
  await until('all read', () => got.length >= count)
  await consumer.disconnect() // It commits and leaves.
  assert.deepEqual(got, written)
  const admin = client.kafka.admin()
  await admin.connect()
  const [committed] = await admin.fetchOffsets({ groupId: topic, topics: [topic] })
  await admin.disconnect()
  assert.equal(committed.partitions[0].offset, `${last + 1n}`)
}

// refused tries logins that the broker does not take. What it says to a token KafkaJS
// does not read: it takes it for a login that went well, and then loses the connection. That
// is also what it may see of a certificate that is not trusted.
const refused = async (listener, mechanism) => {
  const login = mechanism && sasl(mechanism, user, 'guessed')
  if (mechanism === 'oauthbearer') login.oauthBearerProvider = () => token(user, 3600, 'other')
  const client = new Client(listener, login, { certificate: env('STRANGER'), retry: { retries: 1 } })
  const admin = client.kafka.admin()
  const error = await admin.connect().then(() => admin.listTopics()).then(() => null, e => e)
  assert(error, 'the login goes well')
  if (mechanism && mechanism !== 'oauthbearer') assert.equal(error.name, 'KafkaJSSASLAuthenticationError')
}

// denied has somebody without rights be told so by the error of the resource. Of a group or a
// transactional id KafkaJS only says that it cannot find who coordinates it.
const denied = async () => {
  const topic = `${prefix}-denied`
  await new Client('SASL_SSL', sasl('scram-sha-512')).createTopic(topic)
  const client = new Client('SASL_SSL', sasl('scram-sha-512', `${prefix}-nobody`), { retry: { retries: 1 } })
  const fails = async (type, work) => {
    const error = await work().then(() => null, e => e)
    assert.equal(error?.type ?? error?.cause?.type, type, `${error}`)
  }
  const producer = client.producer()
  await producer.connect()
  await fails('TOPIC_AUTHORIZATION_FAILED', () => producer.send({ topic, messages: [{ value: 'forged' }] }))
  await producer.disconnect()
  const admin = client.kafka.admin()
  await admin.connect()
  await fails('CLUSTER_AUTHORIZATION_FAILED', () => admin.describeAcls({
    resourceType: 2, resourceName: topic, resourcePatternType: 3, operation: 1, permissionType: 1 }))
  await admin.disconnect()
}

// Stream writes numbers one after the other, and reads them in a group meanwhile.
class Stream {
  static async start(topic, writer, reader) {
    const s = new Stream()
    Object.assign(s, { clients: [writer, reader], written: 0, last: 0, ending: false })
    await writer.createTopic(topic)
    const producer = writer.producer({ idempotent: true })
    await producer.connect()
    s.consumer = reader.consumer(topic)
    s.consumer.on(s.consumer.events.CRASH, ({ payload }) => { if (!payload.restart) s.error = payload.error })
    await reads(s.consumer, topic, value => {
      // Who loses a connection may read records again.
      if (Number(value) > s.last + 1) s.error = new Error(`${value} was read after ${s.last}`)
      s.last = Math.max(s.last, Number(value))
    })
    s.writing = (async () => {
      while (!s.ending) {
        await producer.send({ topic, messages: [{ value: `${s.written + 1}` }] })
        s.written++
        await sleep(5)
      }
      await producer.disconnect()
    })().catch(error => (s.error = error))
    await s.flows()
    return s
  }

  async until(what, condition) {
    await until(what, () => this.error || condition())
    if (this.error) throw this.error
  }

  flows() {
    const enough = this.last + 20
    return this.until(`${enough} records`, () => this.last >= enough)
  }

  // keepsLoggingIn waits until both clients have logged in again on connections that stay.
  async keepsLoggingIn() {
    const wanted = this.clients.map(c => c.inPlace() + 2)
    await this.until('both sides log in again', () => this.clients.every((c, i) => c.inPlace() >= wanted[i]))
    await this.flows()
  }

  // end ends the stream when all that was written is read.
  async end() {
    this.ending = true
    await this.writing
    await this.until('all read', () => this.last === this.written)
    await this.consumer.disconnect()
  }
}

const tokensEnd = async () => {
  const login = () => ({ mechanism: 'oauthbearer', oauthBearerProvider: () => token(user, tokenSeconds) })
  const s = await Stream.start(`${prefix}-tokens`, new Client('SASL_SSL', login()), new Client('SASL_SSL', login()))
  await s.keepsLoggingIn()
  await s.end()
}

// Password is one that changes while nobody logs in: KafkaJS gives up for ever if a login fails.
class Password {
  now = password
  open = Promise.resolve()
  logins = 0

  // sasl logs in as KafkaJS does it by itself, by the password of the moment.
  sasl(username) {
    const asked = this
    const own = scram256({ username, get password() { return asked.now } })
    const authenticationProvider = args => ({
      authenticate: async () => {
        await this.open
        this.logins++
        await own(args).authenticate().finally(() => this.logins--)
      },
    })
    return { mechanism: 'scram-sha-256', authenticationProvider }
  }

  async change(username, next) {
    let open
    this.open = new Promise(resolve => (open = resolve))
    await until('nobody logs in', () => this.logins === 0)
    await muster(['users', 'set-password', username], next)
    this.now = next
    open()
  }
}

const passwordChanges = async () => {
  const name = `${prefix}-bea`
  const secret = new Password()
  const s = await Stream.start(`${prefix}-password`, new Client('SHORT', secret.sasl(name)), new Client('SHORT', secret.sasl(name)))
  await secret.change(name, 'another')
  await s.keepsLoggingIn()
  await s.end()
  const admin = new Client('SHORT', sasl('scram-sha-256', name), { retry: { retries: 1 } }).kafka.admin()
  await assert.rejects(admin.connect(), { name: 'KafkaJSSASLAuthenticationError' })
}

version('kafkajs')
writeFileSync(adminPassword, 'admin-secret', { mode: 0o600 })
await Promise.all([user, `${prefix}-bea`, `${prefix}-nobody`].map(createUser))
await Promise.all([user, `${prefix}-bea`, 'carol'].map(allow))
const checks = []
for (const [listener, text] of [['SASL_PLAINTEXT', 'in plain text'], ['SASL_SSL', 'over TLS']]) {
  for (const m of mechanisms) checks.push([`login ${text}: ${m.toUpperCase()}`, () => roundTrip(`${prefix}-${listener}-${m}`, listener, m)])
}
checks.push(['login over TLS: certificate', () => roundTrip(`${prefix}-certificate`, 'SSL', null)])
for (const m of mechanisms.slice(0, 3)) {
  checks.push([`refused: a wrong password by ${m.toUpperCase()}`, () => refused('SASL_SSL', m)])
}
checks.push(['refused: a token for another audience', () => refused('SASL_SSL', 'oauthbearer')])
checks.push(['refused: a certificate of another authority', () => refused('SSL', null)])
checks.push(['rights: topic and cluster denied', denied])
checks.push(['in mid-stream: tokens end', tokensEnd])
checks.push(['in mid-stream: the password changes', passwordChanges])
// They run at the same time, and are told of in their order.
const started = checks.map(([name, body]) => [name, body().then(() => null, error => ({ error }))])
for (const [name, done] of started) {
  await run(name, async () => {
    const failed = await done
    if (failed) throw failed.error
  })
}
end()
