import pino from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { noNetwork } from '../../../infra/ip/network.ts'
import type { SessionScored } from '../../../schemas/events.ts'
import { endSessions, runSessionScheduler } from '../../../services/scoring/scheduler.ts'
import type { SessionEvent } from '../../../services/scoring/session/state.ts'
import { readOffset } from '../../../services/scoring/store.ts'
import { runScoring } from '../../../services/scoring/worker.ts'
import { eventually } from '../../support/eventually.ts'
import { createMemoryDataKeys } from '../../support/memory-data-keys.ts'
import { createMemoryLog, type MemoryLog } from '../../support/memory-log.ts'
import { noSkips } from '../../support/no-skips.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'
import { batch, handOff, idled, metaOf, opened, startedAt, testSession } from './support/events.ts'
import {
  bareChromium,
  desktopChrome,
  desktopFirefox,
  headlessChrome,
  withParts,
} from './support/snapshots.ts'
import { taught } from './support/taught.ts'

const codec = createCodec()
const logger = pino({ level: 'silent' })
const topic = 'tidegate.collect.v1'
const day = 24 * 60 * 60 * 1000

let database: TestDatabase
let log: MemoryLog
let now = startedAt
const clock = () => now
let stops: (() => Promise<void>)[] = []

beforeAll(async () => {
  database = await createTestDatabase()
})
beforeEach(() => {
  log = createMemoryLog({ now: clock })
  now = startedAt
})
afterEach(async () => {
  for (const stop of stops) await stop()
  stops = []
  await database.pool.query(
    'truncate scoring.offsets, scoring.sessions, scoring.visitors, scoring.links, scoring.visitor_keys',
  )
})
afterAll(() => database.drop())

/** What the read model would have, straight from the log. */
const applied = { waitFor: async () => {} }

async function start(
  some: Partial<Parameters<typeof runScoring>[0]> = {},
): Promise<() => Promise<void>> {
  const worker = await runScoring({
    learned: taught,
    log,
    pool: database.pool,
    codec,
    dataKeys: createMemoryDataKeys(),
    clock,
    network: noNetwork,
    applied,
    logger,
    skips: noSkips,
    ...some,
  })
  stops.push(worker.stop)
  return worker.stop
}

function append(...events: SessionEvent[]) {
  return log.append(events.map((event) => codec.toRecord(event, metaOf(event))))
}

function decisions(): SessionScored[] {
  return log.records
    .filter((record) => record.topic === 'tidegate.sessions.v1')
    .map((record) => codec.fromRecord(record))
    .flatMap((event) => (event.type === 'SessionScored' ? [event.data] : []))
}

async function decisionsOf(...events: SessionEvent[]): Promise<SessionScored[]> {
  const before = decisions().length
  await append(...events)
  await log.settled()
  return decisions().slice(before)
}

const slugsOf = (decision: SessionScored | undefined) =>
  decision?.signals_fired.map(({ signal }) => signal)

describe('scoring worker', () => {
  it('makes a provisional decision at the first snapshot and a final one at the hand-off', async () => {
    await start()
    const session = testSession('one')
    const [first] = await decisionsOf(...opened(session), batch(session))
    expect(first).toMatchObject({
      session_id: session.id,
      is_provisional: true,
      verdict: 'human',
      phase: 'snapshot',
    })
    const request = handOff(session)
    const [second] = await decisionsOf(request)
    expect(second).toMatchObject({ event_id: request.data.decision_id, is_provisional: false })
    expect(second?.visitor).toEqual(first?.visitor)
  })

  it('scores two sessions of one batch of records, each once', async () => {
    await start()
    const person = testSession('person')
    const bot = testSession('bot', { client: headlessChrome })
    const made = await decisionsOf(
      ...opened(person),
      ...opened(bot),
      batch(person),
      batch(bot),
      handOff(bot),
    )
    expect(
      made.map(({ session_id, verdict, is_provisional }) => [session_id, verdict, is_provisional]),
    ).toEqual([
      [person.id, 'human', true],
      [bot.id, 'bot', true],
      [bot.id, 'bot', false],
    ])
  })

  it('links sessions by continuity and keeps look-alike containers apart', async () => {
    await start()
    const first = testSession('first')
    const again = testSession('again', {
      continuityIds: [first.continuityId],
      continuityId: first.continuityId,
      client: withParts(desktopChrome, {
        canvas: { hash: 'c-other' },
        fonts: { enumeration_hash: 'f-other' },
      }),
    })
    const [one] = await decisionsOf(...opened(first), batch(first))
    const [two] = await decisionsOf(...opened(again), batch(again))
    expect(one?.visitor?.method).toBe('new')
    expect(two?.visitor).toMatchObject({
      id: one?.visitor?.id,
      method: 'continuity',
      basis: 'deterministic',
    })
    const containers = ['a', 'b', 'c'].map((name) => testSession(name, { client: bareChromium }))
    const made = await decisionsOf(...containers.flatMap((each) => [...opened(each), batch(each)]))
    expect(new Set(made.map(({ visitor }) => visitor?.id)).size).toBe(3)
  })

  it('takes an id or a token of another device for a copy, and the owner for who she was', async () => {
    await start()
    const owner = testSession('owner')
    const kept = { continuityIds: [owner.continuityId], continuityId: owner.continuityId }
    const [first] = await decisionsOf(...opened(owner), batch(owner))
    const thief = testSession('thief', { ...kept, client: desktopFirefox, ip: '198.51.100.7' })
    const [stolen] = await decisionsOf(...opened(thief), batch(thief))
    expect(stolen?.visitor).toMatchObject({ method: 'new', basis: 'probabilistic', confidence: 50 })
    expect(stolen?.visitor?.id).not.toBe(first?.visitor?.id)
    expect(slugsOf(stolen)).toContain('kept_id_of_another_device')
    const [later] = await decisionsOf(handOff(thief))
    expect(slugsOf(later)).toContain('kept_id_of_another_device')
    expect(later?.highlights.map(({ key }) => key)).toContain('copied_identity')

    const again = testSession('again', kept)
    const [returned] = await decisionsOf(...opened(again), batch(again))
    const owns = {
      id: first?.visitor?.id,
      method: 'continuity',
      basis: 'deterministic',
      confidence: 99,
    }
    expect(returned?.visitor).toMatchObject(owns)
    expect(slugsOf(returned)).not.toContain('kept_id_of_another_device')

    const resumed = { ...again, client: desktopFirefox, documentHash: 'doc-resumed' }
    const taken = await decisionsOf(...opened(resumed).slice(1), batch(resumed), handOff(resumed))
    expect(taken.at(-1)?.visitor).toMatchObject({ ...owns, basis: 'probabilistic', confidence: 50 })
    expect(slugsOf(taken.at(-1))).toContain('kept_id_of_another_device')
  })

  it('recognises a distinctive desktop without an id after days, and says of it no more than that it is probable', async () => {
    await start()
    const first = testSession('a')
    const [one] = await decisionsOf(...opened(first), batch(first))
    now += 2 * day
    const again = testSession('b', { openedAt: now })
    const test = testSession('t', { openedAt: now, environment: 'test' })
    const [two, other] = await decisionsOf(
      ...[again, test].flatMap((each) => [...opened(each), batch(each)]),
    )
    const { id } = one?.visitor ?? {}
    expect(two?.visitor).toMatchObject({ id, method: 'fingerprint', basis: 'probabilistic' })
    expect(other?.visitor?.id).not.toBe(id)
    expect(two?.signals_fired.map(({ signal }) => signal)).not.toContain(
      'returning_visitor_fingerprint',
    )
  })

  it('takes machines of one look that come within one batch for as many visitors, in doubt', async () => {
    await start()
    const fleet = ['a', 'b', 'c'].map((name) => testSession(name))
    const made = await decisionsOf(...fleet.flatMap((each) => [...opened(each), batch(each)]))
    expect(new Set(made.map(({ visitor }) => visitor?.id)).size).toBe(3)
    expect(made.map(({ visitor }) => visitor?.basis)).toEqual([
      null,
      'probabilistic',
      'probabilistic',
    ])
    expect(made.map(({ visitor }) => visitor?.confidence)).toEqual([85, 50, 50])
  })

  it('recognises a desktop after its browser was updated', async () => {
    await start()
    const before = testSession('before')
    const updated = withParts(desktopChrome, { canvas: { hash: 'c-mac-2' } })
    const [one] = await decisionsOf(...opened(before), batch(before))
    now += 2 * day
    const after = testSession('after', { client: updated, openedAt: now })
    const [two] = await decisionsOf(...opened(after), batch(after))
    expect(two?.visitor).toMatchObject({ id: one?.visitor?.id, method: 'fingerprint_evolution' })
  })

  it('does nothing when records are delivered again', async () => {
    const stop = await start()
    const session = testSession('again')
    await decisionsOf(...opened(session), batch(session), handOff(session))
    await stop()
    expect(await readOffset(database.pool, { topic, partition: 0 })).toBe(4)
    await start()
    await log.settled()
    expect(decisions()).toHaveLength(2)
  })

  it('repeats the same decisions after a crash between append and commit', async () => {
    let crash = true
    const crashing = {
      ...log,
      append: async (records: Parameters<typeof log.append>[0]) => {
        const positions = await log.append(records)
        if (crash) throw new Error('crashed after the append')
        return positions
      },
    }
    const stop = await start({ log: crashing })
    const session = testSession('crash')
    await append(...opened(session), batch(session), handOff(session))
    await log.settled()
    expect(await readOffset(database.pool, { topic, partition: 0 })).toBe(0)
    await stop()
    crash = false
    await start({ log: crashing })
    await log.settled()
    const made = decisions()
    expect(made).toHaveLength(4)
    expect(made.slice(2).map(({ event_id }) => event_id)).toEqual(
      made.slice(0, 2).map(({ event_id }) => event_id),
    )
    expect(new Set(made.map(({ visitor }) => visitor?.id)).size).toBe(1)
  })

  it('ends all idle sessions in one go, however many there are', async () => {
    await database.pool.query(
      `insert into scoring.sessions
         (session_id, organization_id, environment, opened_at, last_activity_at, state)
       select 'sid_' || n, 'org_one', 'live', $1, $1, '{}' from generate_series(1, 1200) n`,
      [startedAt],
    )
    now = startedAt + 31 * 60_000
    const scheduler = { log, pool: database.pool, codec, clock, logger, intervalMs: 3_600_000 }
    const { stop } = runSessionScheduler(scheduler)
    stops.push(stop)
    await eventually(() => expect(log.records).toHaveLength(1200))
    expect(new Set(log.records.map(({ key }) => key)).size).toBe(1200)
  })

  it('ends an idle session once', async () => {
    await start()
    const session = testSession('idle')
    await decisionsOf(...opened(session), batch(session))
    const scheduler = { log, pool: database.pool, codec, clock, logger }
    now = startedAt + 29 * 60_000
    await endSessions(scheduler)
    await log.settled()
    expect(decisions()).toHaveLength(1)
    now = startedAt + 31 * 60_000
    await Promise.all([endSessions(scheduler), endSessions(scheduler)])
    await log.settled()
    await endSessions(scheduler)
    await log.settled()
    expect(decisions()).toHaveLength(2)
    expect(decisions()[1]).toMatchObject({ is_provisional: false, verdict: 'human' })
  })

  it('forgets a final session once its day is over in the log that was scored, not by the clock', async () => {
    const stop = await start()
    const scheduler = { log, pool: database.pool, codec, clock, logger }
    const known = async () => {
      await endSessions(scheduler)
      await log.settled()
      const { rows } = await database.pool.query(
        'select session_id from scoring.sessions order by opened_at',
      )
      return rows.map(({ session_id }) => session_id)
    }
    const [session, other] = [testSession('over'), testSession('other')]
    await decisionsOf(...opened(session), batch(session), handOff(session))
    await stop()
    now = startedAt + 26 * 60 * 60_000
    await append(...opened(other))
    expect(await known()).toEqual([session.id])
    await start()
    await log.settled()
    expect(await known()).toEqual([other.id])
  })

  it('decides nothing about the end of a session that was forgotten', async () => {
    await start()
    const session = testSession('forgotten')
    expect(await decisionsOf(idled(session, { at: now, reason: 'expired' }))).toEqual([])
    const { rows } = await database.pool.query(
      'select count(*)::int as known from scoring.sessions',
    )
    expect(rows).toEqual([{ known: 0 }])
  })
})
