import { pino } from 'pino'
import { afterAll, afterEach, expect, test } from 'vitest'
import { toApiError } from '../../../infra/http/error-response.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import {
  appendClaimed,
  type Claim,
  claimPoolOptions,
  claimsAsGuards,
  createClaims,
  createClaimTable,
  purgeClaims,
} from '../../../services/collect/claims.ts'
import { allRecords } from '../../infra/log/all-records.ts'
import {
  type CollectProcess,
  startCollectProcess,
  stateOf,
} from '../../support/collect-processes.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import {
  eightBodies,
  hashOf,
  oneOfEight,
  openRawDocument,
  raceBodies,
} from '../../support/sequence-race.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { codec } from './collect-app.ts'

const logger = pino({ level: 'silent' })
const topic = 'tidegate.collect.v1'

let undo = new AsyncDisposableStack()
const database = await createTestDatabase()
afterEach(async () => {
  await undo.disposeAsync()
  undo = new AsyncDisposableStack()
})
afterAll(() => database.drop())

/** Creates the claims of a process, on its own connections. The default timeout tolerates slow machines. */
function openClaims({ url = database.url, timeoutMs = 10_000 } = {}) {
  const timeouts = { statementTimeoutMs: timeoutMs, queryTimeoutMs: timeoutMs }
  const pool = createPool({ url, ...claimPoolOptions, ...timeouts })
  undo.defer(() => pool.end())
  const store = createClaimTable(pool)
  const counts = { statements: 0 }
  const claims = createClaims({
    write(claims: Claim[]) {
      counts.statements++
      return store.write(claims)
    },
  })
  return { ...claims, counts }
}

async function openLog(
  options: { guardWrites?: typeof claimsAsGuards } = {},
): Promise<EventLog<Claim>> {
  const log = await openPostgresLog({ pool: database.pool, url: database.url, logger, ...options })
  undo.defer(() => log.close())
  await log.ensureTopics([{ topic, partitions: 1 }])
  return log
}

const claimOf = (name: string, seq: number, changes: Partial<Claim> = {}): Claim => ({
  documentIdHash: Buffer.from(name.padEnd(32)).toString('hex'),
  expiresAt: 1_800_000_000_000,
  seq,
  bodyHash: Buffer.from(`body ${seq}`.padEnd(32)).toString('hex'),
  receivedAt: 1_700_000_000_000 + seq,
  ...changes,
})
const otherBody = { bodyHash: 'ab'.repeat(32), receivedAt: 5 }

test('the first body to claim a number gets it, and a higher number replaces the claim', async () => {
  const [one, other] = [openClaims(), openClaims()]
  const second = claimOf('order', 2)
  expect(await one.claim(second)).toEqual(second)
  expect(await other.claim(claimOf('order', 2, otherBody))).toEqual(second)
  expect(await other.claim(claimOf('order', 1))).toEqual(second)
  const third = claimOf('order', 3)
  expect(await other.claim(third)).toEqual(third)
  expect(await one.claim(second)).toEqual(third)
  expect(await one.claim(claimOf('another', 1))).toEqual(claimOf('another', 1))
})

test('concurrent claims of many documents are one statement, and those that arrive meanwhile one more', async () => {
  const { claim, counts } = openClaims()
  const at = (seq: number) =>
    Promise.all(Array.from({ length: 64 }, (_, i) => claim(claimOf(`many ${i}`, seq))))
  await at(1)
  expect(counts.statements).toBe(1)
  const [early, late] = [at(2), Promise.resolve().then(() => at(3))]
  await Promise.all([early, late])
  expect(counts.statements).toBeLessThanOrEqual(3)
})

test('concurrent claims of one document are decided by the highest number', async () => {
  const { claim, counts } = openClaims()
  const claims = [
    claimOf('same', 2),
    claimOf('same', 4),
    claimOf('same', 4, otherBody),
    claimOf('same', 3),
  ]
  const newest = await Promise.all(claims.map(claim))
  expect(newest).toEqual(Array(4).fill(claimOf('same', 4)))
  expect(counts.statements).toBe(1)
})

test('processes that claim the same documents concurrently agree and do not deadlock', async () => {
  const processes = [openClaims(), openClaims(), openClaims()]
  for (let seq = 1; seq <= 20; seq++) {
    const winners = await Promise.all(
      processes.map((process, p) => {
        const bodyHash = String(p).repeat(64)
        const names = Array.from({ length: 40 }, (_, i) => `circle ${(i * 7 + p * 13) % 40}`)
        return Promise.all(names.map((name) => process.claim(claimOf(name, seq, { bodyHash }))))
      }),
    )
    const holders = new Set(
      winners.flat().map(({ documentIdHash, bodyHash }) => documentIdHash + bodyHash),
    )
    expect(holders.size).toBe(40)
  }
})

test('only expired claims are deleted, a thousand at a time', async () => {
  const { claim } = openClaims()
  const now = 1_000_000_000_000
  const names = Array.from({ length: 1100 }, (_, i) => `ended ${i}`)
  await Promise.all(names.map((name) => claim(claimOf(name, 1, { expiresAt: now - 3_600_000 }))))
  const running = claimOf('running', 1, { expiresAt: now + 1 })
  await claim(running)
  expect(await purgeClaims(database.pool, now)).toBe(1000)
  expect(await purgeClaims(database.pool, now)).toBe(100)
  expect(await purgeClaims(database.pool, now)).toBe(0)
  expect(await claim({ ...running, ...otherBody })).toEqual(running)
})

/** A process whose log is in the same database as the claims, and one whose log is not. */
const kindsOfLog = [
  ['in the same database', { guardWrites: claimsAsGuards }],
  ['elsewhere', {}],
] as const

test.each(kindsOfLog)(
  'of eight bodies with one number on two processes, one is accepted and recorded: log %s',
  async (_kind, options) => {
    const log = await openLog(options)
    const start = async (): Promise<CollectProcess> => {
      const process = await startCollectProcess({ log, claims: openClaims() })
      undo.defer(process.close)
      return process
    }
    const first = await start()
    const processes = [first, await start()]
    const document = await openRawDocument(first.post, first.publishableKey)
    const acknowledged: string[] = []
    let { nonce } = document
    for (let seq = 1; seq <= 6; seq++) {
      if (seq === 4) processes[1] = await start()
      const posts = processes.map((process) => process.post)
      const { outcomes, taken } = await raceBodies(eightBodies(document, seq, nonce), posts)
      expect(outcomes).toEqual(oneOfEight)
      for (const { request, answer } of taken) {
        acknowledged.push(hashOf(request))
        nonce = answer.json.nonce ?? ''
      }
    }
    const records = await allRecords(log, topic)
    const stored = records
      .map((record) => codec.fromRecord(record))
      .filter(({ type }) => type === 'BatchReceived')
    const ours = stored.filter(
      ({ data }) => 'session_id' in data && data.session_id === document.sessionId,
    )
    expect(ours.map(({ data }) => 'body_hash' in data && data.body_hash)).toEqual(acknowledged)
    expect(stateOf(document.sessionId, records)).toMatchObject({ batches: 6, conflicts: 0 })
  },
)

test('a claim and its record are one statement, which a losing claim blocks together with other records in it', async () => {
  const log = await openLog({ guardWrites: claimsAsGuards })
  const claims = openClaims()
  const recordAt = (key: string) => (receivedAt: number) => ({
    topic,
    key,
    headers: {},
    value: Buffer.from(String(receivedAt)),
  })
  const take = (key: string, claim: Claim) =>
    appendClaimed({ log, claims }, { claim, recordAt: recordAt(key) })
  const written = async () =>
    (await allRecords(log, topic))
      .filter(({ key }) => key.startsWith('one'))
      .map(({ key, value }) => `${key} ${value}`)

  const [first, second] = [claimOf('one a', 1), claimOf('one b', 1)]
  expect(await Promise.all([take('one a', first), take('one b', second)])).toEqual([first, second])
  expect(claims.counts.statements).toBe(0)
  // A single write with the same body from another process, a different body, an earlier one, and a new document.
  const plain = log.append([recordAt('one plain')(7)])
  const newest = await Promise.all([
    take('one a', { ...first, receivedAt: 9 }),
    take('one b', { ...second, ...otherBody }),
    take('one b', claimOf('one b', 0)),
    take('one c', claimOf('one c', 1)),
  ])
  expect(newest).toEqual([first, second, second, claimOf('one c', 1)])
  await plain
  const at = (key: string, { receivedAt }: Claim) => `${key} ${receivedAt}`
  expect((await written()).sort()).toEqual(
    [
      at('one a', first),
      at('one a', first),
      at('one b', second),
      at('one c', newest[3] ?? first),
      'one plain 7',
    ].sort(),
  )
})

test('nothing is claimed on a hung connection, and the same body is accepted after it recovers', async () => {
  const proxy = await startTcpProxy(database.url)
  undo.defer(proxy.close)
  const distant = openClaims({ url: proxy.url, timeoutMs: 500 })
  const near = openClaims()
  await distant.claim(claimOf('silent', 1))
  proxy.freeze()
  const second = claimOf('silent', 2)
  // Claims that wait behind a failing write do not wait for another one.
  const others = [claimOf('silent', 3), claimOf('others', 1)]
  const early = distant.claim(second)
  const outcomes = await Promise.allSettled([early, ...others.map(distant.claim)])
  for (const outcome of outcomes)
    expect(outcome.status === 'rejected' && toApiError(outcome.reason)).toMatchObject({
      status: 503,
    })
  expect(await near.claim(claimOf('silent', 1))).toEqual(claimOf('silent', 1))
  await expect.poll(() => distant.claim(second).catch(() => undefined)).toEqual(second)
  expect(await near.claim(claimOf('silent', 1))).toEqual(second)
})
