import { expect, it } from 'vitest'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import {
  createLinkExplainer,
  type LinkExplanation,
} from '../../../services/scoring/visitors/explain.ts'
import { eventually } from '../../support/eventually.ts'
import { batch, opened, startedAt, type TestSession, testSession } from './support/events.ts'
import { openScoringDatabase } from './support/scoring.ts'
import { androidWebView, type Client, desktopChrome, withParts } from './support/snapshots.ts'

const minute = 60_000
const hour = 60 * minute

let now = startedAt

const world = await openScoringDatabase(sessionsProjection)
await world.score({ clock: () => now })

/** Returns a machine that no other test uses. */
function machine(name: string, parts: Parameters<typeof withParts>[1] = {}): Client {
  const own = { webgl: { renderer: `card ${name}` }, canvas: { hash: `canvas ${name}` } }
  return withParts(
    withParts(desktopChrome, { ...own, fonts: { enumeration_hash: `fonts ${name}` } }),
    parts,
  )
}

interface Visit extends Partial<TestSession> {
  /** Milliseconds since the previous visit. */
  after?: number
}

/** Returns the session's id once its decision and visitor can be read. */
async function visit(name: string, { after = 48 * hour, ...extra }: Visit = {}): Promise<string> {
  now += after
  const session = testSession(name, { openedAt: now - 1000, ...extra })
  await world.append(...opened(session), batch(session, { at: now }))
  await eventually(async () => expect(await visitorOf(session.id)).toMatch(/^vid_/))
  return session.id
}

async function visitorOf(sessionId: string): Promise<string | undefined> {
  const { rows } = await world.pool.query(
    'select visitor_id from read.sessions where session_id = $1',
    [sessionId],
  )
  return rows[0]?.visitor_id
}

/** Retries with fresh counts, because scoring commits the link after it appends the decision. */
function explain(sessionId: string): Promise<LinkExplanation> {
  return eventually(async () => {
    const explanation = await createLinkExplainer(world.pool)(sessionId)
    if (!explanation) throw new Error('no explanation')
    return explanation
  })
}

const names = (components: { name: string }[] | undefined) => components?.map(({ name }) => name)

it('explains a new visitor without candidates, regardless of later ones', async () => {
  const first = await visit('alone-1', { client: machine('alone') })
  const expected = { session_id: first, decided_by: 'nobody_before', chosen: null, next: null }
  expect(await explain(first)).toMatchObject({ ...expected, bits_needed: 0 })
  await visit('alone-2', { client: machine('alone') })
  expect(await explain(first)).toMatchObject(expected)
})

it('explains a fingerprint match with a changed time zone', async () => {
  const first = await visit('look-1', { client: machine('look') })
  const moved = machine('look', { environment: { timezone: 'Asia/Tokyo' } })
  const { decided_by, chosen, next, of_visitors } = await explain(
    await visit('look-2', { client: moved }),
  )
  expect(decided_by).toBe('look')
  expect(chosen).toMatchObject({ visitor_id: await visitorOf(first), same_network: true })
  expect(chosen?.bits).toBeGreaterThan(0)
  expect(names(chosen?.components?.changed)).toEqual(['timezone'])
  expect(names(chosen?.components?.agreed)).toContain('canvas')
  expect(next).toBeNull()
  expect(of_visitors).toBeGreaterThan(0)
})

it('explains doubt because the candidate was seen within the hour', async () => {
  const client = machine('away')
  const first = await visit('away-1', { client })
  const there = await visit('away-2', { client, ip: '198.51.100.2', after: minute })
  const next = { same_network: false, lost_because: 'present_elsewhere' }
  expect(await explain(there)).toMatchObject({
    decided_by: 'doubt',
    chosen: null,
    next: { ...next, visitor_id: await visitorOf(first) },
  })
})

it('explains doubt because two candidates have the fingerprint, with component counts', async () => {
  const client = machine('twin')
  const twins = [
    await visit('twin-1', { client }),
    await visit('twin-2', { client, ip: '198.51.100.3', after: minute }),
  ]
  const second = { client, ip: '198.51.100.3', continuityIds: ['continuity-twin-2'] }
  await visit('twin-3', { client, continuityIds: ['continuity-twin-1'] })
  await visit('twin-4', { ...second, after: minute })
  const third = await visit('twin-5', { client, ip: '192.0.2.9' })
  const { decided_by, chosen, next } = await explain(third)
  expect({ decided_by, chosen }).toEqual({ decided_by: 'doubt', chosen: null })
  expect(next?.lost_because).toBe('look_of_several')
  expect(await Promise.all(twins.map(visitorOf))).toContain(next?.visitor_id)
  expect(next?.components?.agreed).toContainEqual({ name: 'canvas', visitors_with_it: 3 })
})

it('explains a correction that overrode the likelier candidate', async () => {
  const client = machine('split')
  const first = await visit('split-1', { client })
  const other = await visit('split-2', { client })
  expect(await explain(other)).toMatchObject({ decided_by: 'look' })
  const mine = await visitorOf(first)
  await visit('split-3', { client, continuityIds: ['continuity-split-1'] })
  await eventually(async () => expect(await visitorOf(other)).not.toBe(mine))
  // Scoring commits its tables shortly after the event is on the log.
  await eventually(async () =>
    expect(await explain(other)).toMatchObject({
      decided_by: 'correction',
      chosen: { visitor_id: await visitorOf(other), components: null },
      next: { visitor_id: mine, lost_because: 'corrected' },
    }),
  )
})

it('explains a match by install id, and one that was copied to another model', async () => {
  const app = (model: string) => withParts(androidApp, { native: { device_model: model } })
  const native = { platform: 'android' as const }
  const first = await visit('app-1', { ...native, client: app('Pixel 8') })
  const again = await visit('app-2', { ...native, client: app('Pixel 8') })
  expect(await explain(again)).toMatchObject({
    decided_by: 'install_id',
    bits_needed: null,
    next: null,
    chosen: { visitor_id: await visitorOf(first) },
  })
  const copy = await visit('app-3', { ...native, client: app('Galaxy S24') })
  expect(await explain(copy)).toMatchObject({
    decided_by: 'doubt',
    chosen: null,
    next: { visitor_id: await visitorOf(first), lost_because: 'other_model' },
  })
})

it('returns null for an unknown session', async () => {
  const explainLink = createLinkExplainer(world.pool)
  expect(await explainLink(testSession('nobody').id)).toBeNull()
})

const androidApp = withParts(androidWebView, { native: { install_id: 'install-1' } })
