import { beforeEach, describe, expect, it } from 'vitest'
import { runAsOneStatement } from '../../../../infra/postgres/arrays.ts'
import { transaction } from '../../../../infra/postgres/pool.ts'
import type { SessionScored } from '../../../../schemas/events.ts'
import { readAttestedApps } from '../../../../services/scoring/attestation/apps.ts'
import { judgeAttestation } from '../../../../services/scoring/attestation/judge.ts'
import { judgeAttestations } from '../../../../services/scoring/attestation/outcomes.ts'
import { eraseScoringData } from '../../../../services/scoring/erase.ts'
import { rebuildVisitors } from '../../../../services/scoring/restore.ts'
import {
  type AttestOptions,
  appAssertion,
  appAttestation,
  createApple,
  createDeviceKey,
  createGoogle,
  type DeviceKey,
  hashOfDocument,
  playToken,
  playVerdict,
} from '../../../support/attestation.ts'
import { visitorErased } from '../../../support/erased.ts'
import { eventually } from '../../../support/eventually.ts'
import { noSkips } from '../../../support/no-skips.ts'
import {
  batch,
  clientPublicKey,
  documentOpened,
  handOff,
  opened,
  organizationId,
  type TestSession,
  testSession,
} from '../support/events.ts'
import { asRecorded, loseScoring, useScoring } from '../support/scoring.ts'
import { signalsOf } from '../support/sessions.ts'

const appId = 'ABCDE12345.com.example.shop'
const packageName = 'com.example.shop'

// Certificates and verdicts are valid only around the current time.
const world = await useScoring(Date.now())
let key: DeviceKey

const apple = createApple()
const google = createGoogle()
beforeEach(async () => {
  key = createDeviceKey()
  await start()
})

function attesting(organization = organizationId) {
  const { decryption_key, verification_key } = google
  const ios = { platform: 'ios', organization, app_id: appId }
  const android = { platform: 'android', organization, package_name: packageName }
  const keys = { decryption_key, verification_key }
  const file = { apps: [ios, { ...android, ...keys }], apple_root: apple.pem }
  return { apps: readAttestedApps(JSON.stringify(file)), judge: judgeAttestation }
}

const start = (organization?: string) =>
  world.start({ attestationVerifier: attesting(organization) })

const native = {
  device_model: 'iPhone15,2',
  install_id: 'i-1',
  hooks: false,
  jailbreak_or_root: false,
}
const appSession = (name: string, more: Partial<TestSession> = {}) =>
  testSession(name, {
    platform: 'ios',
    client: { snapshot: { native } },
    openedAt: world.now,
    document: { challenge: `challenge of ${name}` },
    ...more,
  })

const hashFor = ({ document }: TestSession, keyId = key.keyId) =>
  hashOfDocument(document.challenge ?? '', clientPublicKey, keyId)

interface Attestation {
  type: string
  key_id: string
  data: string
}

const attested = (session: TestSession, more: Partial<AttestOptions> = {}): Attestation => ({
  type: 'app_attest',
  key_id: key.keyId,
  data: appAttestation({ apple, key, appId, hash: hashFor(session), ...more }).toString('base64'),
})
const asserted = (session: TestSession, counter: number): Attestation => ({
  type: 'app_attest_assertion',
  key_id: key.keyId,
  data: appAssertion({ key, appId, counter, hash: hashFor(session) }).toString('base64'),
})

let received = world.now
const sending = (attestation: unknown) => ({ at: ++received, observations: { attestation } })
const snapshotWith = (session: TestSession, attestation?: unknown) =>
  batch(session, {
    at: ++received,
    observations: { snapshot: session.client.snapshot, attestation },
  })

/** Returns the decision about a session that sends the attestation with its snapshot. */
async function scored(session: TestSession, attestation?: unknown): Promise<SessionScored> {
  await world.append(...opened(session), snapshotWith(session, attestation))
  return lastOf(session)
}

function lastOf(session: TestSession): SessionScored {
  const decision = world.decisions(session).at(-1)
  if (!decision) throw new Error('nothing was decided')
  return decision
}

const firedIn = (decision: SessionScored) =>
  signalsOf(decision).filter((signal) => /attest|trusted/.test(signal))
const judged = ({ attestation }: SessionScored) => [attestation?.status, attestation?.reason]
const valid = ['valid', null]
const devices = async () => (await world.pool.query('select * from scoring.attested_devices')).rows

describe('an app with App Attest', () => {
  it('is inconclusive without an attestation, and human with a valid one', async () => {
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

  it('may attest in a later body, which triggers a new decision', async () => {
    const session = appSession('later')
    await scored(session)
    await world.append(batch(session, { seq: 2, ...sending(attested(session)) }))
    const verdicts = world.decisions(session).map(({ verdict }) => verdict)
    expect(verdicts).toEqual(['inconclusive', 'human'])
  })

  it('is recognized by assertions of its key, also after a restart or the loss of the database', async () => {
    const first = appSession('first')
    const { device_identity: device } = await scored(first, attested(first))
    for (const counter of [1, 5]) {
      const session = appSession(`counter-${counter}`)
      expect(judged(await scored(session, asserted(session, counter)))).toEqual(valid)
      await world.stop()
      if (counter === 5) await loseScoring(world.pool)
      await start()
    }
    for (const counter of [5, 4]) {
      const session = appSession(`again-${counter}`)
      const decision = await scored(session, asserted(session, counter))
      expect(firedIn(decision)).toEqual(['attestation_counter'])
    }
    const next = appSession('next')
    const { device_identity } = await scored(next, asserted(next, 6))
    const first_seen_at = device?.lifecycle.first_seen_at
    expect(device_identity).toMatchObject({
      id: device?.id,
      lifecycle: { seen_count: 4, first_seen_at },
    })
  })

  it('with an unattested key counts as unattested', async () => {
    const session = appSession('unknown')
    const decision = await scored(session, asserted(session, 1))
    expect(judged(decision)).toEqual(['unverified', 'unknown_key'])
    expect(decision).toMatchObject({ risk_score: 40, device_identity: null })
    expect(decision.highlights.flatMap(({ evidence }) => evidence)).toContainEqual({
      signal: 'app_unattested',
      name: 'App not attested: unknown key',
    })
  })

  it('counts as unattested if the organization has no apps, and stores nothing', async () => {
    await world.stop()
    await start('org_other')
    const session = appSession('foreign')
    expect(judged(await scored(session, attested(session)))).toEqual(['unverified', 'unknown_app'])
    expect(await devices()).toEqual([])
  })

  it('may be a development build only with a test key', async () => {
    const live = appSession('live')
    const test = appSession('test', { environment: 'test' })
    const isDevelopment = true
    const invalid = ['invalid', 'environment']
    expect(judged(await scored(live, attested(live, { isDevelopment })))).toEqual(invalid)
    expect(judged(await scored(test, attested(test, { isDevelopment })))).toEqual(valid)
  })

  it('is invalid with the attestation of another session, whatever the document sends later', async () => {
    const session = appSession('refused')
    const decision = await scored(session, attested(appSession('original')))
    expect(judged(decision)).toEqual(['invalid', 'nonce'])
    expect(firedIn(decision)).toEqual(['attestation_invalid'])
    expect(decision).toMatchObject({ verdict: 'inconclusive', device_identity: null })
    expect(decision.risk_score).toBeGreaterThan(45)
    const good = batch(session, { seq: 2, ...sending(attested(session)) })
    await world.append(good, handOff(session, { seq: 3 }))
    expect(judged(lastOf(session))).toEqual(['invalid', 'nonce'])
  })

  it('may repeat an assertion, which counts once', async () => {
    const first = appSession('once')
    await scored(first, attested(first))
    const session = appSession('twice')
    const same = asserted(session, 3)
    await scored(session, same)
    await world.append(snapshotWith(session, same), handOff(session, sending(same)))
    expect(judged(lastOf(session))).toEqual(valid)
  })

  it('attests only its own document, not others of the session', async () => {
    const session = appSession('two')
    await scored(session, attested(session))
    const other = { ...session, documentHash: 'doc-of-a-script' }
    await world.append(documentOpened(other), handOff(other, { seq: 1 }))
    const without = { verdict: 'inconclusive', attestation: null, device_identity: null }
    expect(lastOf(session)).toMatchObject(without)
  })

  it('is not checked for pages, which costs no query', async () => {
    const page = testSession('page', { openedAt: world.now })
    const events = asRecorded(...opened(page), snapshotWith(page, attested(page)))
    const query = () => Promise.reject(new Error('a statement'))
    const none = await judgeAttestations(
      { query } as never,
      { events, states: new Map() },
      attesting(),
    )
    expect(none.outcomes.size).toBe(0)
    expect((await scored(page, attested(page))).attestation).toBeNull()
  })

  it('is deleted when its session is erased, and rebuilt from the log otherwise', async () => {
    const first = appSession('kept')
    await scored(first, attested(first))
    const before = await devices()
    const sources = { ...world.parts, skips: noSkips }
    const { switched } = await rebuildVisitors(sources, { acceptDifferences: false })
    expect(switched).toBe(true)
    expect(await devices()).toEqual(before)
    await transaction(world.pool, (tx) => eraseScoringData(tx, [visitorErased([first.id])]))
    expect(await devices()).toEqual([])
  })
})

it('accepts only one of two concurrent assertions with the same counter', async () => {
  const first = appSession('start')
  await scored(first, attested(first))
  const transactions = await Promise.all([world.pool.connect(), world.pool.connect()])
  const [one, other] = transactions
  for (const tx of transactions) await tx.query('begin')
  const judgedIn = (tx: typeof one, name: string) => {
    const session = appSession(name)
    const events = asRecorded(...opened(session), snapshotWith(session, asserted(session, 7)))
    return judgeAttestations(tx, { events, states: new Map() }, attesting())
  }
  const isWaiting = `select from pg_locks where locktype = 'advisory' and not granted
    and database = (select oid from pg_database where datname = current_database())`
  try {
    const before = await judgedIn(one, 'before')
    const waiting = judgedIn(other, 'after')
    await eventually(async () => expect((await world.pool.query(isWaiting)).rowCount).toBe(1))
    await runAsOneStatement(one, before.pendingWrites())
    await one.query('commit')
    const statuses = [before, await waiting].map(({ outcomes }) =>
      [...outcomes.values()].map(({ attestation }) => attestation.status),
    )
    expect(statuses).toEqual([['valid'], ['invalid']])
  } finally {
    // Close the connections: waiters for their locks would hang.
    for (const tx of transactions) tx.release(true)
  }
})

describe('an app with Play Integrity', () => {
  const install = 'i-1'
  const ofData = (data: string): Attestation => ({ type: 'play_integrity', key_id: install, data })
  const play = async (session: TestSession, more: object = {}) =>
    ofData(await playToken(playVerdict(packageName, hashFor(session, install), more), google))
  const android = (name: string) => appSession(name, { platform: 'android' })

  it('is human, and its next session has the same device', async () => {
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

  it('on a device that fails the Play verdict is inconclusive, like a rooted one', async () => {
    const session = android('rooted')
    const rooted = { deviceIntegrity: { deviceRecognitionVerdict: [] } }
    const decision = await scored(session, await play(session, rooted))
    expect(firedIn(decision)).toEqual(['device_not_trusted'])
    expect(decision).toMatchObject({ verdict: 'inconclusive', risk_score: 40 })
  })

  it('is invalid with the token of another session or a forged one; an oversized token counts as none', async () => {
    const judgedWith = async (name: string, attestation: Attestation) =>
      judged(await scored(android(name), attestation))
    expect(await judgedWith('replayed', await play(android('original')))).toEqual([
      'invalid',
      'nonce',
    ])
    expect(await judgedWith('forged', ofData('a'.repeat(10_000)))).toEqual(['invalid', 'malformed'])
    const large = await scored(android('large'), ofData('a'.repeat(20_000)))
    expect(large).toMatchObject({ attestation: null, risk_score: 40 })
  })

  it('is unverified if an iOS app sends it', async () => {
    const session = appSession('crossed')
    expect(judged(await scored(session, await play(session)))).toEqual([
      'unverified',
      'unknown_app',
    ])
  })
})
