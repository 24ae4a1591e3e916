// Runs checks and says what came of them, in the form that interop/matrix reads:
// a line "version V", a line "ok GROUP: NAME" for each check that passed, and an
// exit code other than 0 if one did not.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export { assert }
export const broker = process.argv[2]

const patience = 60_000
let failed = 0

export const version = name => {
  const folders = createRequire(import.meta.url).resolve.paths(name)
  for (const folder of folders) {
    try {
      console.log(`version ${JSON.parse(readFileSync(join(folder, name, 'package.json'))).version}`)
      return
    } catch {} // It is in another one.
  }
}

export const run = async (name, body) => {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${2 * patience} ms`)), 2 * patience)
  })
  try {
    await Promise.race([body(), late])
    console.log(`ok ${name}`)
  } catch (error) {
    failed++
    console.log(`FAILED ${name}`)
    console.log(error)
  } finally {
    clearTimeout(timer)
  }
}

export const end = () => process.exit(failed ? 1 : 0)

// until waits until a condition holds.
export const until = async (what, condition) => {
  const deadline = Date.now() + patience
  while (!(await condition())) {
    assert(Date.now() < deadline, `after ${patience} ms still not: ${what}`)
    await sleep(20)
  }
}

// records are to be written, in turns to the partitions.
export const records = (n, partitions) => {
  const now = Date.now()
  return Array.from({ length: n }, (_, i) => ({
    partition: i % partitions,
    key: `key${i % 7}`,
    value: `value${i}${'x'.repeat(i)}`,
    timestamp: now + i,
    headers: { number: `${i}`, empty: '' },
  }))
}

// same compares what was read, maybe more than once, with what was written.
export const same = (read, written) => {
  const got = new Map(read.map(({ offset, ...record }) => [record.value, record]))
  for (const record of written) assert.deepEqual(got.get(record.value), record)
  assert.equal(got.size, written.length)
}

// shared waits until each partition has one owner, and each member a fair share.
export const shared = (members, partitions) =>
  until('the partitions are shared', () => {
    const all = members.flatMap(m => m.owned())
    return (
      all.length === partitions &&
      new Set(all).size === partitions &&
      members.every(m => m.owned().length === partitions / members.length)
    )
  })
