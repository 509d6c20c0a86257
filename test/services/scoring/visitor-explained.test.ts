import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import { openPostgresLog } from '../../../infra/log/postgres/log.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import {
  createLinkExplainer,
  type LinkExplanation,
} from '../../../services/scoring/visitors/explain.ts'
import { runScoring } from '../../../services/scoring/worker.ts'
import { eventually } from '../../support/eventually.ts'
import { createMemoryDataKeys } from '../../support/memory-data-keys.ts'
import { noSkips } from '../../support/no-skips.ts'
import { openProjectionWorld, type ProjectionWorld, silent } from '../../support/projections.ts'
import {
  batch,
  metaOf,
  opened,
  scoringTopics,
  startedAt,
  type TestSession,
  testSession,
} from './support/events.ts'
import { androidWebView, type Client, desktopChrome, withParts } from './support/snapshots.ts'
import { taught } from './support/taught.ts'

const minute = 60_000
const hour = 60 * minute

let world: ProjectionWorld
let log: EventLog
let stop: () => Promise<void>
let now = startedAt

beforeAll(async () => {
  world = await openProjectionWorld()
  const { pool, url } = world.database
  log = await openPostgresLog({ pool, url, logger: silent })
  await log.ensureTopics(scoringTopics)
  const applied = await world.openApplied()
  await world.run(log, sessionsProjection, { applied })
  const dataKeys = createMemoryDataKeys()
  const base = {
    log,
    pool,
    dataKeys,
    codec: world.codec,
    clock: () => now,
    network: noNetwork,
    applied,
    skips: noSkips,
  }
  const worker = await runScoring({ ...base, learned: taught, logger: silent })
  stop = worker.stop
})
afterAll(async () => {
  await stop()
  await log.close()
  await world.close()
})

/** A machine that no other test has. */
function machine(name: string, parts: Parameters<typeof withParts>[1] = {}): Client {
  const own = { webgl: { renderer: `card ${name}` }, canvas: { hash: `canvas ${name}` } }
  return withParts(
    withParts(desktopChrome, { ...own, fonts: { enumeration_hash: `fonts ${name}` } }),
    parts,
  )
}

interface Visit extends Partial<TestSession> {
  /** Milliseconds since the visit before. */
  after?: number
}

/** The session's id, once its decision and its visitor can be read. */
async function visit(name: string, { after = 48 * hour, ...some }: Visit = {}): Promise<string> {
  now += after
  const session = testSession(name, { openedAt: now - 1000, ...some })
  const events = [...opened(session), batch(session, { at: now })]
  await log.append(events.map((event) => world.codec.toRecord(event, metaOf(event))))
  await eventually(async () => expect(await visitorOf(session.id)).toMatch(/^vid_/))
  return session.id
}

async function visitorOf(sessionId: string): Promise<string | undefined> {
  const { rows } = await world.database.pool.query(
    'select visitor_id from read.sessions where session_id = $1',
    [sessionId],
  )
  return rows[0]?.visitor_id
}

/** Counts anew each time. Scoring commits the link behind the decision. */
function explain(sessionId: string): Promise<LinkExplanation> {
  return eventually(async () => {
    const explanation = await createLinkExplainer(world.database.pool)(sessionId)
    if (!explanation) throw new Error('no explanation')
    return explanation
  })
}

const names = (components: { name: string }[] | undefined) => components?.map(({ name }) => name)

describe('why a session is of its visitor', () => {
  it('nobody before looked like it, whatever comes later', async () => {
    const first = await visit('alone-1', { client: machine('alone') })
    const expected = { session_id: first, decided_by: 'nobody_before', chosen: null, next: null }
    expect(await explain(first)).toMatchObject({ ...expected, bits_needed: 0 })
    await visit('alone-2', { client: machine('alone') })
    expect(await explain(first)).toMatchObject(expected)
  })

  it('it looks as before, but for its time zone', async () => {
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

  it('it brought a kept id, and the next one is never weighed', async () => {
    const first = await visit('kept-1', { client: machine('kept') })
    const other = await visit('kept-2', {
      client: machine('kept'),
      ip: '198.51.100.1',
      after: minute,
    })
    const again = await visit('kept-3', {
      client: machine('kept'),
      continuityIds: ['continuity-kept-1'],
    })
    const [mine, theirs] = [await visitorOf(first), await visitorOf(other)]
    const explanation = await explain(again)
    expect(explanation).toMatchObject({ decided_by: 'kept_id', chosen: { visitor_id: mine } })
    expect(explanation.next).toMatchObject({ visitor_id: theirs, lost_because: 'kept_id_decides' })
    expect(theirs).not.toBe(mine)
  })

  it('the one before was there within the hour', async () => {
    const first = await visit('away-1', { client: machine('away') })
    const there = await visit('away-2', {
      client: machine('away'),
      ip: '198.51.100.2',
      after: minute,
    })
    expect(await explain(there)).toMatchObject({
      decided_by: 'doubt',
      chosen: null,
      next: {
        visitor_id: await visitorOf(first),
        same_network: false,
        lost_because: 'present_elsewhere',
      },
    })
  })

  it('the one before began only hours before', async () => {
    const first = await visit('young-1', { client: machine('young') })
    const there = await visit('young-2', { client: machine('young'), after: 20 * hour })
    expect(await explain(there)).toMatchObject({
      decided_by: 'doubt',
      chosen: null,
      next: {
        visitor_id: await visitorOf(first),
        same_network: true,
        lost_because: 'known_too_briefly',
      },
    })
  })

  it('two had its look within a day, and it says how common that is', async () => {
    const client = machine('twin')
    const twins = [
      await visit('twin-1', { client }),
      await visit('twin-2', { client, ip: '198.51.100.3', after: minute }),
    ]
    await visit('twin-3', { client, continuityIds: ['continuity-twin-1'] })
    await visit('twin-4', {
      client,
      ip: '198.51.100.3',
      continuityIds: ['continuity-twin-2'],
      after: minute,
    })
    const third = await visit('twin-5', { client, ip: '192.0.2.9' })
    const { decided_by, chosen, next } = await explain(third)
    expect({ decided_by, chosen }).toEqual({ decided_by: 'doubt', chosen: null })
    expect(next?.lost_because).toBe('look_of_several')
    expect(await Promise.all(twins.map(visitorOf))).toContain(next?.visitor_id)
    expect(next?.components?.agreed).toContainEqual({ name: 'canvas', visitors_with_it: 3 })
  })

  it('too much of the one before is another', async () => {
    const many = { screen_width: 800, screen_height: 600, pixel_ratio: 1, timezone: 'Asia/Tokyo' }
    const other = {
      environment: many,
      navigator: { languages: ['ja'] },
      fonts: { enumeration_hash: 'none' },
    }
    await visit('unlike-1', { client: machine('unlike') })
    const session = await visit('unlike-2', {
      client: machine('unlike', other),
      ip: '198.51.100.4',
    })
    const { decided_by, next } = await explain(session)
    expect([decided_by, next?.lost_because]).toEqual(['doubt', 'too_little_evidence'])
    expect(next?.bits).toBeLessThan(0)
    expect(names(next?.components?.changed)).toEqual(expect.arrayContaining(['screen', 'fonts']))
  })

  it('a correction gave it its visitor, and took it from the likelier one', async () => {
    const client = machine('split')
    const first = await visit('split-1', { client })
    const other = await visit('split-2', { client })
    expect(await explain(other)).toMatchObject({ decided_by: 'look' })
    const mine = await visitorOf(first)
    await visit('split-3', { client, continuityIds: ['continuity-split-1'] })
    await eventually(async () => expect(await visitorOf(other)).not.toBe(mine))
    // The event shows a moment before scoring's own tables, which are committed after it is on the log.
    await eventually(async () =>
      expect(await explain(other)).toMatchObject({
        decided_by: 'correction',
        chosen: { visitor_id: await visitorOf(other), components: null },
        next: { visitor_id: mine, lost_because: 'corrected' },
      }),
    )
  })

  it('the install id of an app, and one that was copied to another model', async () => {
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

  it('of a session that is not known, nothing', async () => {
    const explainLink = createLinkExplainer(world.database.pool)
    expect(await explainLink(testSession('nobody').id)).toBeNull()
  })
})

const androidApp = withParts(androidWebView, { native: { install_id: 'install-1' } })
