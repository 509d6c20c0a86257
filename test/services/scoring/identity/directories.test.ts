import { expect, test } from 'vitest'
import {
  type Directories,
  followDirectories,
} from '../../../../services/scoring/identity/directories.ts'
import {
  type LookupResult,
  readLookups,
  saveLookup,
} from '../../../../services/scoring/identity/tables.ts'
import { eventually } from '../../../support/eventually.ts'
import { useScoring } from '../support/scoring.ts'

const now = 1_800_000_000_000
const world = await useScoring(now)

const preferred = 'https://trusted.example/.well-known/http-message-signatures-directory'
const subject = 'https://agent.example/.well-known/http-message-signatures-directory'
const keys: LookupResult = { keys: { key: { x: 'x', starts_at: null, ends_at: null } } }
const timeout: LookupResult = { failure: 'timeout' }

/** Saves a result, by default fetched at `now` and valid for a second. */
function save(of: string, result: LookupResult, fetched_at = now, ends_at = fetched_at + 1000) {
  return saveLookup(world.pool, { subject: of, result, fetched_at, ends_at })
}
const stored = async (at = now) => (await readLookups(world.pool, [subject], at)).get(subject)

function follow(): Directories {
  const options = { ...world.parts, preferred: () => [preferred], intervalMs: 20 }
  const directories = followDirectories(options)
  world.stopLater(directories.stop)
  return directories
}

test('finds a fetched directory until it expires', async () => {
  const directories = follow()
  expect(directories.find(subject)).toBeUndefined()
  await save('192.0.2.1', { host: null })
  await save(subject, keys)
  await eventually(() => expect(directories.find(subject)).toMatchObject({ result: keys }))
  expect(directories.find('192.0.2.1')).toBeUndefined()
  world.now += 1000
  expect(directories.find(subject)).toBeUndefined()
})

test('failures and new directories do not displace preferred directories', async () => {
  await save(preferred, keys, now - 1000, now + 1000)
  await save(subject, keys, now - 500, now + 1000)
  const fill = (result: object, subjects: string) =>
    world.pool.query(
      `insert into scoring.agent_lookups (subject, result, fetched_at, ends_at)
        select 'https://${subjects}' || n || '.example/', $1, $2, $3 from generate_series(1, 1200) n`,
      [JSON.stringify(result), now, now + 1000],
    )
  await fill(timeout, 'failing')
  const directories = follow()
  const resultsOf = (...subjects: string[]) => subjects.map((one) => directories.find(one)?.result)
  await eventually(() => expect(resultsOf(preferred, subject)).toEqual([keys, keys]))
  expect(directories.find('https://failing1.example/')).toBeUndefined()
  await fill({ keys: {} }, 'new')
  await eventually(() => expect(directories.find('https://new1.example/')).toBeDefined())
  expect(resultsOf(preferred)).toEqual([keys])
})

test('a failure is recorded with the directory and does not change its expiry', async () => {
  await save(subject, keys)
  for (const failed_at of [now + 10, now + 999]) {
    await save(subject, timeout, failed_at, failed_at + 5000)
    const fetched = { result: keys, fetched_at: now, ends_at: now + 1000 }
    const last_failure = { reason: 'timeout', failed_at }
    expect(await stored(failed_at)).toEqual({ subject, ...fetched, last_failure })
  }
  expect(await stored(now + 1000)).toBeUndefined()
  await save(subject, keys, now + 999)
  expect(await stored(now + 1000)).toMatchObject({ ends_at: now + 1999, last_failure: null })
})

test('a failure replaces an expired directory and an earlier failure', async () => {
  await save(subject, keys, now, now + 1)
  for (const result of [timeout, { failure: 'size' }]) {
    await save(subject, result, now + 1)
    expect(await stored()).toMatchObject({ result })
  }
})
