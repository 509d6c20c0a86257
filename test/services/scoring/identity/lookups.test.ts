import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { type Tx, transaction } from '../../../../infra/postgres/pool.ts'
import { directoryOf } from '../../../../infra/wire/web-bot-auth/fields.ts'
import { runLookups } from '../../../../services/scoring/identity/lookups.ts'
import {
  type LookupResult,
  purgeExpiredLookups,
  readLookups,
  recordNonces,
} from '../../../../services/scoring/identity/tables.ts'
import { eventually } from '../../../support/eventually.ts'
import { useScoring } from '../support/scoring.ts'

const minute = 60_000
const startedAt = 1_800_000_000_000
const directory = 'https://agent.example/.well-known/http-message-signatures-directory'
const keysResult: LookupResult = { keys: { k: { x: 'x', starts_at: null, ends_at: null } } }

const world = await useScoring(startedAt)

interface Sender {
  organization?: string
  source?: string
}

function start(respond: (subject: string) => LookupResult | Promise<LookupResult>) {
  const fetched: string[] = []
  const reported: string[] = []
  const lookups = runLookups({
    ...world.parts,
    intervalMs: 10,
    async fetch(subject) {
      fetched.push(subject)
      return respond(subject)
    },
    async onResult(subject, sessions) {
      reported.push(...sessions.map(({ session_id }) => `${session_id} ${subject}`))
    },
  })
  world.stopLater(lookups.stop)
  const request = (
    subject: string,
    id = 'sid_1',
    { organization = 'org_1', source = '192.0.2.1' }: Sender = {},
  ) => {
    const session = {
      session_id: id,
      organization_id: organization,
      environment: 'live' as const,
      source,
    }
    lookups.request({ subject, session, dueAt: world.now })
  }
  return { request, fetched, reported }
}

it('fetches a subject once for all waiting sessions, and stores it before it reports the result', async () => {
  const { promise, resolve } = Promise.withResolvers<LookupResult>()
  const { request, fetched, reported } = start(() => promise)
  request(directory, 'sid_1')
  await eventually(() => expect(fetched).toEqual([directory]))
  request(directory, 'sid_2')
  resolve(keysResult)
  await eventually(() =>
    expect(reported.toSorted()).toEqual([`sid_1 ${directory}`, `sid_2 ${directory}`]),
  )
  expect(fetched).toEqual([directory])
  expect((await readLookups(world.pool, [directory], world.now)).get(directory)).toMatchObject({
    result: keysResult,
    fetched_at: startedAt,
    ends_at: startedAt + 60 * minute,
  })
})

it('does not fetch a subject that another process has fetched', async () => {
  const first = start(() => keysResult)
  first.request(directory)
  await eventually(() => expect(first.reported.length).toBe(1))
  const second = start(() => keysResult)
  second.request(directory)
  await eventually(() => expect(second.reported.length).toBe(1))
  expect(second.fetched).toEqual([])
})

it('retries a failure after five minutes while a session waits', async () => {
  let result: LookupResult = { failure: 'timeout' }
  const { request, fetched, reported } = start(() => result)
  request(directory)
  await eventually(async () =>
    expect((await readLookups(world.pool, [directory], world.now)).size).toBe(1),
  )
  world.now += 5 * minute - 1
  request('https://other.test/', 'sid_2')
  await eventually(() => expect(fetched).toEqual([directory, 'https://other.test/']))
  world.now += 1
  await eventually(() => expect(fetched.filter((one) => one === directory).length).toBe(2))
  result = keysResult
  world.now += 31 * minute
  request(directory, 'sid_3')
  await eventually(() => expect(reported).toEqual([`sid_3 ${directory}`]))
})

it('fetches four subjects of a domain at once, and no more after four failures', async () => {
  const { promise, resolve } = Promise.withResolvers<LookupResult>()
  const { request, fetched } = start((subject) => (subject === directory ? keysResult : promise))
  for (let n = 0; n < 20; n++) request(`https://a${n}.evil.example/`)
  await eventually(() => expect(fetched.length).toBe(4))
  resolve({ failure: 'timeout' })
  request(directory)
  await eventually(() => expect(fetched).toContain(directory))
  request('https://other.test/')
  await eventually(() => expect(fetched).toContain('https://other.test/'))
  expect(fetched.filter((one) => one.includes('evil')).length).toBe(4)
})

it('successful lookups do not count against the limit of their domain', async () => {
  const { request, reported } = start(() => keysResult)
  for (let n = 0; n < 20; n++) request(`https://a${n}.agents.example/`, `sid_${n}`)
  await eventually(() => expect(reported.length).toBe(20))
})

const names = Array.from({ length: 1040 }, (_, n) => `https://a.flood${n}.example/`)
const catalogued = directoryOf('chatgpt.com')

it('slow failures of one source in 20 organizations do not delay other lookups', async () => {
  const { request, fetched, reported } = start((subject) =>
    names.includes(subject) ? delay(5).then(() => ({ failure: 'timeout' })) : keysResult,
  )
  for (const [n, name] of names.entries())
    request(name, `sid_flood${n}`, { organization: `org_flood${n % 20}` })
  request(directory, 'sid_good', { organization: 'org_good', source: '198.51.100.1' })
  request(catalogued, 'sid_catalogued')
  const both = [`sid_catalogued ${catalogued}`, `sid_good ${directory}`]
  await eventually(() => expect(reported.toSorted()).toEqual(both))
  expect(fetched.indexOf(directory)).toBeLessThan(40)
})

it('a failed refresh keeps other processes from fetching the directory for five minutes', async () => {
  let result: LookupResult = keysResult
  const first = start(() => result)
  first.request(directory, 'sid_1')
  await eventually(() => expect(first.reported.length).toBe(1))
  result = { failure: 'timeout' }
  world.now += 6 * minute
  first.request(directory, 'sid_2')
  await eventually(() => expect(first.fetched.length).toBe(2))
  await eventually(async () =>
    expect((await readLookups(world.pool, [directory], world.now)).get(directory)).toMatchObject({
      result: keysResult,
      ends_at: startedAt + 60 * minute,
      last_failure: { reason: 'timeout', failed_at: world.now },
    }),
  )
  // Stop the first process, which would retry at the same time and fail again.
  await world.stop()
  const second = start(() => keysResult)
  const fetchesOf = (subject: string) => second.fetched.filter((one) => one === subject).length
  for (let n = 0; n < 5; n++) second.request(directory, `sid_${n}`)
  second.request('https://other.test/', 'sid_other')
  await eventually(() => expect(second.reported).toEqual(['sid_other https://other.test/']))
  expect(fetchesOf(directory)).toBe(0)
  world.now += 5 * minute
  await eventually(() => expect(second.reported.length).toBe(6))
  expect(fetchesOf(directory)).toBe(1)
})

const takeIn = (tx: Tx, ...requests: [nonce_hash: string, request_hash: string][]) => {
  const ends_at = world.now + minute
  const nonces = requests.map(([nonce_hash, request_hash]) => ({
    nonce_hash,
    request_hash,
    ends_at,
  }))
  return recordNonces(tx, nonces)
}

it('a nonce belongs to the first request that used it', async () => {
  const take = (...requests: [string, string][]) =>
    transaction(world.pool, (tx) => takeIn(tx, ...requests))
  expect([...(await take(['aa', '01'], ['bb', '02'], ['aa', '03']))].sort()).toEqual([
    ['aa', '01'],
    ['bb', '02'],
  ])
  for (const request of ['04', '01'])
    expect(await take(['aa', request])).toEqual(new Map([['aa', '01']]))
  expect(await purgeExpiredLookups(world.pool, world.now)).toBe(0)
  expect(await purgeExpiredLookups(world.pool, world.now + minute)).toBe(2)
})

it('a nonce recorded in an open transaction makes others wait for its outcome', async () => {
  const raced = async (ends: 'committed' | 'rolled back') => {
    const held = Promise.withResolvers<void>()
    const taken = Promise.withResolvers<void>()
    const first = transaction(world.pool, async (tx) => {
      await takeIn(tx, ['cc', '01'])
      taken.resolve()
      await held.promise
      if (ends === 'rolled back') throw new Error(ends)
    }).catch(() => {})
    await taken.promise
    const second = transaction(world.pool, (tx) => takeIn(tx, ['cc', '02']))
    await eventually(async () => expect(await waiting()).toBe(1))
    held.resolve()
    await first
    return (await second).get('cc')
  }
  expect(await raced('rolled back')).toBe('02')
  await world.pool.query('truncate scoring.used_nonces')
  expect(await raced('committed')).toBe('01')
})

async function waiting(): Promise<number> {
  const { rows } = await world.pool.query<{ count: number }>(
    `select count(*)::int as count from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and query like '%used_nonces%'`,
  )
  return rows[0]?.count ?? 0
}
