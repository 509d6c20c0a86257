import pino from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createCodec } from '../../../../infra/event-store/codec.ts'
import { noNetwork } from '../../../../infra/ip/network.ts'
import { runTogether } from '../../../../infra/postgres/arrays.ts'
import { transaction } from '../../../../infra/postgres/pool.ts'
import type { SessionScored } from '../../../../schemas/events.ts'
import { readAttestedApps } from '../../../../services/scoring/attestation/apps.ts'
import { judgeAttestation } from '../../../../services/scoring/attestation/judge.ts'
import { attestationsOf } from '../../../../services/scoring/attestation/outcomes.ts'
import { eraseStates } from '../../../../services/scoring/erase.ts'
import { rebuildVisitors } from '../../../../services/scoring/restore.ts'
import type { SessionEvent } from '../../../../services/scoring/session/state.ts'
import { runScoring } from '../../../../services/scoring/worker.ts'
import {
  type Apple,
  type AttestOptions,
  appAssertion,
  appAttestation,
  createApple,
  createDeviceKey,
  createGoogle,
  type DeviceKey,
  type Google,
  hashOfDocument,
  playToken,
  playVerdict,
} from '../../../support/attestation.ts'
import { visitorErased } from '../../../support/erased.ts'
import { eventually } from '../../../support/eventually.ts'
import { createMemoryDataKeys } from '../../../support/memory-data-keys.ts'
import { createMemoryLog, type MemoryLog } from '../../../support/memory-log.ts'
import { noSkips } from '../../../support/no-skips.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/postgres.ts'
import {
  batch,
  clientPublicKey,
  handOff,
  metaOf,
  opened,
  organizationId,
  type TestSession,
  testSession,
} from '../support/events.ts'
import { taught } from '../support/taught.ts'

const codec = createCodec()
const logger = pino({ level: 'silent' })
const appId = 'ABCDE12345.com.example.shop'
const packageName = 'com.example.shop'
// Certificates and verdicts are of now.
const now = Date.now()

let database: TestDatabase
let log: MemoryLog
let worker: Awaited<ReturnType<typeof runScoring>>
let apple: Apple
let google: Google
let key: DeviceKey

beforeAll(async () => {
  database = await createTestDatabase()
  apple = createApple()
  google = createGoogle()
})
beforeEach(async () => {
  key = createDeviceKey()
  log = createMemoryLog({ now: () => now })
  await start()
})
afterEach(async () => {
  await worker.stop()
  await loseDatabase()
})
afterAll(() => database.drop())

const loseDatabase = () =>
  database.pool.query(`truncate scoring.offsets, scoring.sessions, scoring.visitors, scoring.links,
    scoring.visitor_keys, scoring.attested_devices`)

const apps = (organization = organizationId) => {
  const { decryption_key, verification_key } = google
  const ios = { platform: 'ios', organization, app_id: appId }
  const android = {
    platform: 'android',
    organization,
    package_name: packageName,
    decryption_key,
    verification_key,
  }
  return readAttestedApps(JSON.stringify({ apps: [ios, android], apple_root: apple.pem }))
}

const attesting = () => ({ apps: apps(), judge: judgeAttestation })

async function start(own = apps()): Promise<void> {
  const attesting = { apps: own, judge: judgeAttestation }
  worker = await runScoring({
    log,
    codec,
    logger,
    attesting,
    pool: database.pool,
    network: noNetwork,
    skips: noSkips,
    learned: taught,
    dataKeys: createMemoryDataKeys(),
    clock: () => now,
    applied: { waitFor: async () => {} },
  })
}

const native = {
  device_model: 'iPhone15,2',
  install_id: 'i-1',
  hooks: false,
  jailbreak_or_root: false,
}
const appSession = (name: string, some: Partial<TestSession> = {}) =>
  testSession(name, { platform: 'ios', client: { snapshot: { native } }, openedAt: now, ...some })

const challengeOf = ({ id }: TestSession) => `challenge of ${id}`
const hashFor = (session: TestSession, keyId = key.keyId) =>
  hashOfDocument(challengeOf(session), clientPublicKey, keyId)

const begun = (session: TestSession): SessionEvent[] =>
  opened(session).map((event) =>
    event.type === 'DocumentOpened'
      ? { ...event, data: { ...event.data, challenge: challengeOf(session) } }
      : event,
  )

interface Attestation {
  type: string
  key_id: string
  data: string
}

const attested = (session: TestSession, some: Partial<AttestOptions> = {}): Attestation => ({
  type: 'app_attest',
  key_id: key.keyId,
  data: appAttestation({ apple, key, appId, hash: hashFor(session), ...some }).toString('base64'),
})
const asserted = (session: TestSession, counter: number): Attestation => ({
  type: 'app_attest_assertion',
  key_id: key.keyId,
  data: appAssertion({ key, appId, counter, hash: hashFor(session) }).toString('base64'),
})

async function append(...events: SessionEvent[]): Promise<void> {
  await log.append(events.map((event) => codec.toRecord(event, metaOf(event))))
  await log.settled()
}

let received = now
const recordedOf = (event: SessionEvent) => {
  const { value, ...record } = codec.toRecord(event, metaOf(event))
  const at = { partition: 0, offset: 0, timestamp: now }
  return codec.fromRecord({ ...record, ...at, value: value ?? Buffer.alloc(0) })
}

const withAttestation = (session: TestSession, attestation?: unknown) => ({
  at: ++received,
  observations: { version: 1, elapsed_ms: 9, snapshot: session.client.snapshot, attestation },
})

function decisionsOf({ id }: TestSession): SessionScored[] {
  return log.records
    .filter(({ topic }) => topic === 'tidegate.sessions.v1')
    .map((record) => codec.fromRecord(record))
    .flatMap(({ type, data }) => (type === 'SessionScored' && data.session_id === id ? [data] : []))
}

/** The decision about a session that sends the attestation with its snapshot. */
async function scored(session: TestSession, attestation?: unknown): Promise<SessionScored> {
  await append(...begun(session), batch(session, withAttestation(session, attestation)))
  const [decision] = decisionsOf(session)
  if (!decision) throw new Error('nothing was decided')
  return decision
}

const firedIn = ({ signals_fired }: SessionScored) =>
  signals_fired.map(({ signal }) => signal).filter((signal) => /attest|trusted/.test(signal))
const judged = ({ attestation }: SessionScored) => [attestation?.status, attestation?.reason]

describe('an app with App Attest', () => {
  it('is no more than inconclusive without, and human with a valid attestation', async () => {
    const without = await scored(appSession('without'))
    expect(without).toMatchObject({ verdict: 'inconclusive', risk_score: 40, attestation: null })
    expect(firedIn(without)).toEqual(['app_unattested'])
    const session = appSession('with')
    const decision = await scored(session, attested(session))
    expect(decision).toMatchObject({
      verdict: 'human',
      analysis_coverage: { attestation: true },
      device_identity: { source: 'attested', platform: 'ios', lifecycle: { seen_count: 1 } },
      attestation: { status: 'valid', method: 'app_attest', app_id: appId },
    })
    expect(firedIn(decision)).toEqual([])
    expect(decision.evidence?.unchecked).not.toContain('attestation')
    expect(decision.evidence?.sources).toContain('attestation')
  })

  it('says so in any body, and the session is decided anew', async () => {
    const session = appSession('later')
    const body = {
      seq: 2,
      at: ++received,
      observations: { version: 1, attestation: attested(session) },
    }
    await scored(session)
    await append(batch(session, body))
    expect(decisionsOf(session).map(({ verdict }) => verdict)).toEqual(['inconclusive', 'human'])
  })

  it('is known again by assertions of its key, after a restart and after the database was lost, too', async () => {
    const first = appSession('first')
    const { device_identity: device } = await scored(first, attested(first))
    const counters = [1, 5]
    for (const counter of counters) {
      const session = appSession(`counter-${counter}`)
      expect(judged(await scored(session, asserted(session, counter)))).toEqual(['valid', null])
      await worker.stop()
      if (counter === 5) await loseDatabase()
      await start()
    }
    const again = appSession('again')
    expect(firedIn(await scored(again, asserted(again, 5)))).toEqual(['attestation_counter'])
    const lower = appSession('lower')
    expect(firedIn(await scored(lower, asserted(lower, 4)))).toEqual(['attestation_counter'])
    const next = appSession('next')
    const { device_identity } = await scored(next, asserted(next, 6))
    expect(device_identity).toMatchObject({ id: device?.id, lifecycle: { seen_count: 4 } })
    expect(device_identity?.lifecycle.first_seen_at).toBe(device?.lifecycle.first_seen_at)
  })

  it('with a key that nobody attested is as one without', async () => {
    const session = appSession('unknown')
    const decision = await scored(session, asserted(session, 1))
    expect(judged(decision)).toEqual(['unverified', 'unknown_key'])
    expect(decision).toMatchObject({
      verdict: 'inconclusive',
      risk_score: 40,
      device_identity: null,
    })
    expect(decision.highlights.flatMap(({ evidence }) => evidence)).toContainEqual({
      signal: 'app_unattested',
      name: 'App that nothing attests: unknown key',
    })
  })

  it('of an organization without apps is as one without, and nothing is kept', async () => {
    await worker.stop()
    await start(apps('org_other'))
    const session = appSession('foreign')
    expect(judged(await scored(session, attested(session)))).toEqual(['unverified', 'unknown_app'])
    expect((await database.pool.query('select from scoring.attested_devices')).rowCount).toBe(0)
  })

  it('counts a development build with a test key only', async () => {
    const live = appSession('live')
    const test = appSession('test', { environment: 'test' })
    const isDevelopment = true
    expect(judged(await scored(live, attested(live, { isDevelopment })))).toEqual([
      'invalid',
      'environment',
    ])
    expect(judged(await scored(test, attested(test, { isDevelopment })))).toEqual(['valid', null])
  })

  it.each<[string, (session: TestSession) => Attestation, string]>([
    ['of another session', () => attested(appSession('original')), 'nonce'],
    [
      'of another app',
      (session) => attested(session, { appId: 'ABCDE12345.com.example.other' }),
      'app',
    ],
    ['under another name', (session) => ({ ...attested(session), key_id: 'other' }), 'nonce'],
    ['that is none', () => ({ type: 'app_attest', key_id: key.keyId, data: 'AAAA' }), 'malformed'],
  ])('is refused with an attestation %s', async (_name, attestation, reason) => {
    const session = appSession(`refused-${reason}`)
    const decision = await scored(session, attestation(session))
    expect(judged(decision)).toEqual(['invalid', reason])
    expect(firedIn(decision)).toEqual(['attestation_invalid'])
    expect(decision).toMatchObject({ verdict: 'inconclusive', device_identity: null })
    expect(decision.risk_score).toBeGreaterThan(45)
  })

  it('stays refused, whatever the document sends next', async () => {
    const session = appSession('second-try')
    const body = {
      seq: 2,
      at: ++received,
      observations: { version: 1, attestation: attested(session) },
    }
    await scored(session, { ...attested(session), data: 'AAAA' })
    await append(batch(session, body), handOff(session, { seq: 3 }))
    expect(judged(decisionsOf(session).at(-1) as SessionScored)).toEqual(['invalid', 'malformed'])
  })

  it('may send the same again, which counts once', async () => {
    const first = appSession('once')
    await scored(first, attested(first))
    const session = appSession('twice')
    const same = asserted(session, 3)
    await scored(session, same)
    const repeat = { seq: 2, at: ++received, observations: { version: 1, attestation: same } }
    await append(batch(session, withAttestation(session, same)), handOff(session, repeat))
    expect(judged(decisionsOf(session).at(-1) as SessionScored)).toEqual(['valid', null])
  })

  it('vouches for no other document of its session', async () => {
    const session = appSession('two')
    await scored(session, attested(session))
    const other = { ...session, documentHash: 'doc-of-a-script' }
    const [, document] = begun(other)
    if (!document) throw new Error('no document')
    await append(document, handOff(other, { seq: 1 }))
    const last = decisionsOf(session).at(-1)
    expect(last).toMatchObject({
      verdict: 'inconclusive',
      attestation: null,
      device_identity: null,
    })
  })

  it('is read of apps only, and costs pages no statement', async () => {
    const page = testSession('page', { openedAt: now })
    const events = [...begun(page), batch(page, withAttestation(page, attested(page)))].map(
      recordedOf,
    )
    const query = () => Promise.reject(new Error('a statement'))
    const none = await attestationsOf({ query } as never, { events, known: new Map() }, attesting())
    expect(none.outcomes.size).toBe(0)
    expect((await scored(page, attested(page))).attestation).toBeNull()
  })

  it('is forgotten with the session that was erased, and rebuilt from the log otherwise', async () => {
    const first = appSession('kept')
    await scored(first, attested(first))
    const known = () => database.pool.query('select * from scoring.attested_devices')
    const before = (await known()).rows
    const rebuilt = await rebuildVisitors(
      { pool: database.pool, log, codec, skips: noSkips },
      { acceptDifferences: false },
    )
    expect(rebuilt.switched).toBe(true)
    expect((await known()).rows).toEqual(before)
    const erased = visitorErased([first.id])
    await transaction(database.pool, (tx) => eraseStates(tx, [erased]))
    expect((await known()).rowCount).toBe(0)
  })
})

it('of two assertions with one counter that are scored at once one counts', async () => {
  const first = appSession('start')
  await scored(first, attested(first))
  const transactions = await Promise.all([database.pool.connect(), database.pool.connect()])
  const [one, other] = transactions
  for (const tx of transactions) await tx.query('begin')
  const judgedIn = async (tx: typeof one, name: string) => {
    const session = appSession(name)
    const events = [
      ...begun(session),
      batch(session, withAttestation(session, asserted(session, 7))),
    ]
    const recorded = events.map(recordedOf)
    return attestationsOf(tx, { events: recorded, known: new Map() }, attesting())
  }
  const isWaiting = `select from pg_locks where locktype = 'advisory' and not granted
    and database = (select oid from pg_database where datname = current_database())`
  try {
    const before = await judgedIn(one, 'before')
    const waiting = judgedIn(other, 'after')
    await eventually(async () => expect((await database.pool.query(isWaiting)).rowCount).toBe(1))
    await runTogether(one, before.save())
    await one.query('commit')
    const statuses = [before, await waiting].map(({ outcomes }) =>
      [...outcomes.values()].map(({ found }) => found.status),
    )
    expect(statuses).toEqual([['valid'], ['invalid']])
  } finally {
    // Closes them, because whatever waits for their locks would hang.
    for (const tx of transactions) tx.release(true)
  }
})

describe('an app with Play Integrity', () => {
  const install = 'i-1'
  const play = async (session: TestSession, some: object = {}): Promise<Attestation> => ({
    type: 'play_integrity',
    key_id: install,
    data: await playToken(playVerdict(packageName, hashFor(session, install), some), google),
  })
  const android = (name: string) => appSession(name, { platform: 'android' })

  it('is human, and the same device at its next session', async () => {
    const first = android('first')
    const decision = await scored(first, await play(first))
    expect(decision).toMatchObject({
      verdict: 'human',
      device_identity: { source: 'attested', platform: 'android', matched_anchors: ['install_id'] },
    })
    const second = android('second')
    expect((await scored(second, await play(second))).device_identity).toMatchObject({
      id: decision.device_identity?.id,
      lifecycle: { seen_count: 2 },
    })
  })

  it('on a device that Google does not vouch for is no worse than rooted', async () => {
    const session = android('rooted')
    const rooted = { deviceIntegrity: { deviceRecognitionVerdict: [] } }
    const decision = await scored(session, await play(session, rooted))
    expect(firedIn(decision)).toEqual(['device_not_trusted'])
    expect(decision).toMatchObject({ verdict: 'inconclusive', risk_score: 40 })
  })

  it('is refused with a token of another session, and with none', async () => {
    const replayed = android('replayed')
    expect(judged(await scored(replayed, await play(android('original'))))).toEqual([
      'invalid',
      'nonce',
    ])
    const forged = android('forged')
    const data = 'a'.repeat(10_000)
    expect(judged(await scored(forged, { type: 'play_integrity', key_id: install, data }))).toEqual(
      ['invalid', 'malformed'],
    )
  })

  it('counts for no app of Apple', async () => {
    const session = appSession('crossed')
    expect(judged(await scored(session, await play(session)))).toEqual([
      'unverified',
      'unknown_app',
    ])
  })

  it('that is too large is as none', async () => {
    const session = android('large')
    const attestation = { type: 'play_integrity', key_id: install, data: 'a'.repeat(20_000) }
    expect(await scored(session, attestation)).toMatchObject({ attestation: null, risk_score: 40 })
  })
})
