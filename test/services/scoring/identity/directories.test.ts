import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import {
  type Directories,
  followDirectories,
} from '../../../../services/scoring/identity/directories.ts'
import { readLookups, saveLookup } from '../../../../services/scoring/identity/tables.ts'
import { eventually } from '../../../support/eventually.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/postgres.ts'
import { silent } from '../../../support/projections.ts'

let database: TestDatabase
let following: Directories | undefined
let now = 1_800_000_000_000

beforeAll(async () => {
  database = await createTestDatabase()
})
afterEach(async () => {
  await following?.stop()
  await database.pool.query('truncate scoring.agent_lookups')
})
afterAll(() => database.drop())

const preferred = 'https://trusted.example/.well-known/http-message-signatures-directory'
const subject = 'https://agent.example/.well-known/http-message-signatures-directory'
const directory = {
  subject,
  result: { keys: { key: { x: 'x', starts_at: null, ends_at: null } } },
  fetched_at: now,
  ends_at: now + 1000,
  last_failure: null,
}

function follow(): Directories {
  const clock = () => now
  const options = { pool: database.pool, clock, logger: silent, preferred: () => [preferred] }
  following = followDirectories({ ...options, intervalMs: 20 })
  return following
}

test('what scoring fetched is in memory soon after, and until it ends', async () => {
  const directories = follow()
  expect(directories.find(subject)).toBeUndefined()
  await saveLookup(database.pool, { ...directory, subject: '192.0.2.1', result: { host: null } })
  await saveLookup(database.pool, directory)
  await eventually(() => expect(directories.find(subject)).toEqual(directory))
  expect(directories.find('192.0.2.1')).toBeUndefined()
  now += 1000
  expect(directories.find(subject)).toBeUndefined()
})

test('neither failures nor new directories displace keys', async () => {
  await saveLookup(database.pool, {
    ...directory,
    subject: preferred,
    fetched_at: now - 1000,
    ends_at: now + 1000,
  })
  await saveLookup(database.pool, { ...directory, fetched_at: now - 500, ends_at: now + 1000 })
  const fill = (result: object, subjects: string) =>
    database.pool.query(
      `insert into scoring.agent_lookups (subject, result, fetched_at, ends_at)
        select 'https://${subjects}' || n || '.example/', $1, $2, $3 from generate_series(1, 1200) n`,
      [JSON.stringify(result), now, now + 1000],
    )
  await fill({ failure: 'timeout' }, 'failing')
  const directories = follow()
  await eventually(() =>
    expect([preferred, subject].map((one) => directories.find(one)?.result)).toEqual([
      directory.result,
      directory.result,
    ]),
  )
  expect(directories.find('https://failing1.example/')).toBeUndefined()
  await fill({ keys: {} }, 'new')
  await eventually(() => expect(directories.find('https://new1.example/')).toBeDefined())
  expect(directories.find(preferred)?.result).toEqual(directory.result)
})

test('a failure stays beside the directory, whose life it neither shortens nor extends', async () => {
  const fail = (at: number) =>
    saveLookup(database.pool, {
      subject,
      result: { failure: 'timeout' },
      fetched_at: at,
      ends_at: at + 5000,
    })
  const stored = async (at: number) =>
    (await readLookups(database.pool, [subject], at)).get(subject)
  const fetched = { ...directory, fetched_at: now, ends_at: now + 1000 }
  await saveLookup(database.pool, fetched)
  for (const at of [now + 10, now + 999]) {
    await fail(at)
    const last_failure = { reason: 'timeout', failed_at: at }
    expect(await stored(at)).toEqual({ ...fetched, last_failure })
  }
  expect(await stored(now + 1000)).toBeUndefined()
  await saveLookup(database.pool, { ...fetched, fetched_at: now + 999, ends_at: now + 1999 })
  expect(await stored(now + 1000)).toMatchObject({ ends_at: now + 1999, last_failure: null })
})

test('a failure replaces no directory that has not ended', async () => {
  const failure = { subject, result: { failure: 'timeout' }, fetched_at: now, ends_at: now + 500 }
  await saveLookup(database.pool, { ...directory, ends_at: now + 1 })
  await saveLookup(database.pool, failure)
  const stored = async () => (await readLookups(database.pool, [subject], now)).get(subject)?.result
  expect(await stored()).toEqual(directory.result)
  await saveLookup(database.pool, { ...failure, fetched_at: now + 1, ends_at: now + 500 })
  expect(await stored()).toEqual(failure.result)
  await saveLookup(database.pool, { ...failure, result: { failure: 'size' } })
  expect(await stored()).toEqual({ failure: 'size' })
})
