// Tests of the packages as they are installed from their tarballs: packages/test runs them.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { startBroker } from 'muster-broker';
import { useBroker } from 'muster-broker/node-test';

import client from './client.cjs';

const { roundTrip } = client;
const run = promisify(execFile);
const require = createRequire(import.meta.url);
const shared = useBroker({ settings: { 'num.partitions': 3 } });

test('a client writes and reads', async () => {
  const broker = shared();
  assert.equal(await roundTrip(broker.brokers, await broker.topic({ partitions: 2 })), 'hello');
  assert.deepEqual(broker.listeners, { PLAINTEXT: broker.bootstrapServers });
  assert.match(broker.version, /^v/);
  assert.equal(broker.httpUrl, '');
});

test('CommonJS has the same', async () => {
  const broker = await require('muster-broker').startBroker({ http: true });
  const answer = await fetch(`${broker.httpUrl}/healthz`);
  assert.equal(answer.status, 200);
  await broker.stop();
  await broker.stop(); // Once more does nothing.
  assert.match(broker.log, /stopped/);
});

test('a broker that cannot start says why', async () => {
  await assert.rejects(startBroker({ settings: { 'no.such.setting': 1 } }), /no\.such\.setting/);
});

test('a topic that is refused says why', async () => {
  await assert.rejects(shared().topic({ settings: { 'retention.ms': 'x' } }), /retention\.ms/);
});

test('variables of the shell are no settings', async (t) => {
  process.env.MUSTER_LOG_RETENTION_MS = 'nonsense';
  process.env.KAFKA_NUM_PARTITIONS = 'nonsense';
  t.after(() => {
    delete process.env.MUSTER_LOG_RETENTION_MS;
    delete process.env.KAFKA_NUM_PARTITIONS;
  });
  await (await startBroker()).stop();
});

test('another program can be the broker', async (t) => {
  process.env.MUSTER_BINARY = '/nowhere/muster';
  t.after(() => delete process.env.MUSTER_BINARY);
  await assert.rejects(startBroker(), /ENOENT.*noexec.*MUSTER_BINARY/);
});

test('a program without the permission to run says what to do', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-'));
  process.env.MUSTER_BINARY = join(folder, 'muster');
  t.after(() => {
    delete process.env.MUSTER_BINARY;
    return rm(folder, { recursive: true });
  });
  await writeFile(process.env.MUSTER_BINARY, '#!/bin/sh\n', { mode: 0o644 });
  await assert.rejects(startBroker(), /EACCES.*may this user run it.*MUSTER_BINARY/);
});

test('a platform that has no package is named, with those that have one', async (t) => {
  const was = Object.getOwnPropertyDescriptor(process, 'platform');
  Object.defineProperty(process, 'platform', { ...was, value: 'freebsd' });
  t.after(() => Object.defineProperty(process, 'platform', was));
  await assert.rejects(startBroker(), /no package for freebsd-.*linux, darwin and win32.*MUSTER_BINARY/);
});

test('no temporary folder is needed', async (t) => {
  const was = process.env.TMPDIR;
  process.env.TMPDIR = '/nowhere';
  t.after(() => (was === undefined ? delete process.env.TMPDIR : (process.env.TMPDIR = was)));
  const broker = await startBroker();
  await broker.topic();
  await broker.stop();
});

test('a port that is taken is named', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const address = `127.0.0.1:${other.address().port}`;
  await assert.rejects(startBroker({ settings: { listeners: `PLAINTEXT://${address}` } }), new RegExp(`in use.*${address}`));
});

test('an error says what to do if the package for the platform is not installed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-'));
  t.after(() => rm(folder, { recursive: true }));
  await copyFile(require.resolve('muster-broker'), join(folder, 'index.cjs'));
  await assert.rejects(require(join(folder, 'index.cjs')).startBroker(), /@muster-broker\/.* is not installed.*--omit=optional/);
});

const script = "const b = await require('muster-broker').startBroker(); console.log(b.bootstrapServers);";

test('a broker that is not stopped does not keep Node.js from ending, and ends with it', async () => {
  const { stdout } = await run(process.execPath, ['-e', `(async () => { ${script} })()`]);
  const [host, port] = stdout.trim().split(':');
  await ended(connect(Number(port), host));
});

test('no broker outlives a process that is killed', async () => {
  const child = spawn(process.execPath, ['-e', `(async () => { ${script} setInterval(() => {}, 1000) })()`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(child.stdout, 'data');
  const [host, port] = String(line).trim().split(':');
  const socket = connect(Number(port), host);
  await once(socket, 'connect');
  child.kill('SIGKILL');
  await ended(socket);
});

/** Waits until a broker closes a connection, or refuses it. */
function ended(socket) {
  return new Promise((resolve) => {
    socket.resume();
    socket.once('error', resolve);
    socket.once('close', resolve);
  });
}

test('the command is there', async () => {
  const { stdout } = await run('node_modules/.bin/muster', ['version', '--json']);
  assert.equal(JSON.parse(stdout).version, `v${require('muster-broker/package.json').version}`);
  await assert.rejects(run('node_modules/.bin/muster', ['nope']), { code: 2 });
});
