'use strict';

// Starts brokers. Each is a process of its own, which ends with its stdin, and so with this
// process, however that ends.

const { execFile, spawn } = require('node:child_process');
const { randomUUID } = require('node:crypto');
const path = require('node:path');
const { createInterface } = require('node:readline');
const { promisify } = require('node:util');

const logLines = 10_000; // How much of a broker's log is kept.
const platforms = /^(linux|darwin|win32)-(x64|arm64)$/;

/** The path of the program: MUSTER_BINARY, or that of the package for this platform. */
function binary() {
  if (process.env.MUSTER_BINARY) return process.env.MUSTER_BINARY;
  const platform = `${process.platform}-${process.arch}`;
  if (!platforms.test(platform)) {
    throw new Error(
      `muster-broker: there is no package for ${platform}: there are linux, darwin and win32, each with x64 and arm64. ` +
        'Set MUSTER_BINARY to the path of a muster program for this platform.',
    );
  }
  const name = `@muster-broker/${platform}`;
  try {
    const folder = path.dirname(require.resolve(`${name}/package.json`));
    return path.join(folder, 'bin', process.platform === 'win32' ? 'muster.exe' : 'muster');
  } catch {
    throw new Error(
      `muster-broker: the package ${name} is not installed. It is an optional dependency: do not install with ` +
        '--omit=optional or --no-optional, and if the lock file was made on another platform, delete node_modules and the ' +
        'lock file and install again. Or set MUSTER_BINARY to the path of a muster program.',
    );
  }
}

/** The environment without variables that would be settings of the broker. */
function environment() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(MUSTER|KAFKA)_/.test(name)));
}

function argumentsOf({ settings = {}, data, http = false }) {
  const args = ['serve', '--ready', '--until-eof', '--http', http ? '127.0.0.1:0' : 'off'];
  args.push(...(data === undefined ? ['--store', 'mem'] : ['--store', 'disk', '--data', data]));
  if (!('listeners' in settings)) args.push('--listen', '127.0.0.1:0');
  for (const [name, value] of Object.entries(settings)) args.push('--set', `${name}=${value}`);
  return args;
}

class Broker {
  #child;
  #ended;
  #log = [];
  #ready;

  constructor(options) {
    const child = spawn(binary(), argumentsOf(options), {
      env: environment(),
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: process.platform !== 'win32', // Ctrl-C is for the tests, which stop it.
      windowsHide: true,
    });
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      child.once('close', resolve);
      child.once('error', (error) => {
        this.#log.push(
          `${error}. Is it for this platform, may this user run it, and does its file system let programs run (noexec)? ` +
            'Set MUSTER_BINARY to the path of another muster program.',
        );
        resolve();
      });
    });
    child.stdin.on('error', () => {}); // It has ended by itself.
    createInterface({ input: child.stderr }).on('line', (line) => {
      this.#log.push(line);
      if (this.#log.length > logLines) this.#log.shift();
    });
  }

  async start(timeout) {
    const child = this.#child;
    const lines = createInterface({ input: child.stdout });
    const timer = setTimeout(() => child.kill('SIGKILL'), timeout);
    const line = await Promise.race([
      new Promise((resolve) => lines.once('line', resolve)),
      this.#ended.then(() => undefined),
    ]);
    clearTimeout(timer);
    if (line === undefined) {
      throw new Error(`muster-broker: the broker did not start (exit code ${child.exitCode ?? child.signalCode}):\n${this.log}`);
    }
    this.#ready = JSON.parse(line);
    // A broker that runs does not keep Node.js from ending: neither it nor its pipes.
    child.unref();
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.unref();
    return this;
  }

  get brokers() {
    return [this.bootstrapServers];
  }

  get bootstrapServers() {
    return this.#ready.listeners[0].advertised;
  }

  get listeners() {
    return Object.fromEntries(this.#ready.listeners.map((l) => [l.name, l.advertised]));
  }

  get httpUrl() {
    return this.#ready.http;
  }

  get pid() {
    return this.#ready.pid;
  }

  get version() {
    return this.#ready.version;
  }

  get log() {
    return this.#log.join('\n');
  }

  async topic({ partitions = 1, name = `topic-${randomUUID().slice(0, 13)}`, settings = {} } = {}) {
    const args = ['topics', 'create', name, '--partitions', String(partitions), '--broker', this.bootstrapServers];
    for (const [key, value] of Object.entries(settings)) args.push('--config', `${key}=${value}`);
    try {
      await promisify(execFile)(binary(), args, { env: environment() });
    } catch (error) {
      throw new Error(`muster-broker: ${String(error.stderr || error).trim()}`);
    }
    return name;
  }

  async stop() {
    const child = this.#child;
    child.stdin.end();
    const timer = setTimeout(() => child.kill('SIGKILL'), 30_000); // It also has Node.js wait for the end.
    await this.#ended;
    clearTimeout(timer);
  }
}
Broker.prototype[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')] = Broker.prototype.stop;

async function startBroker(options = {}) {
  return new Broker(options).start(options.timeout ?? 60_000);
}

module.exports = { startBroker, binary };
