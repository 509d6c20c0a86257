import type pg from 'pg'
import { afterAll, afterEach, beforeEach } from 'vitest'
import { createCodec } from '../../../../infra/event-store/codec.ts'
import type { RecordedEvent } from '../../../../infra/event-store/event.ts'
import type { Projection } from '../../../../infra/event-store/projection.ts'
import { noNetwork } from '../../../../infra/ip/network.ts'
import type { KeyedRecord, LogRecord, Position } from '../../../../infra/log/port.ts'
import { openPostgresLog } from '../../../../infra/log/postgres/log.ts'
import type { SessionScored } from '../../../../schemas/events.ts'
import type { SessionEvent } from '../../../../services/scoring/session/state.ts'
import { type RunningScoring, runScoring } from '../../../../services/scoring/worker.ts'
import { eventually } from '../../../support/eventually.ts'
import { createMemoryDataKeys } from '../../../support/memory-data-keys.ts'
import { createMemoryLog, type MemoryLog } from '../../../support/memory-log.ts'
import { noSkips } from '../../../support/no-skips.ts'
import { createTestDatabase } from '../../../support/postgres.ts'
import { openProjectionWorld, silent } from '../../../support/projections.ts'
import {
  batch,
  handOff,
  metaOf,
  opened,
  scoringTopics,
  startedAt,
  type TestSession,
} from './events.ts'
import { taught } from './taught.ts'

type ScoringOptions = Parameters<typeof runScoring>[0]

export const codec = createCodec()

/** Starts scoring with learned answers, keys in memory, no network data, no skips and a read model that never lags. */
export function startScoring(
  options: Pick<ScoringOptions, 'log' | 'pool'> & Partial<ScoringOptions>,
): Promise<RunningScoring> {
  return runScoring({
    codec,
    dataKeys: createMemoryDataKeys(),
    learned: taught,
    network: noNetwork,
    clock: () => startedAt,
    applied: { waitFor: async () => {} },
    logger: silent,
    skips: noSkips,
    ...options,
  })
}

export const recordsOf = (...events: SessionEvent[]): KeyedRecord[] =>
  events.map((event) => codec.toRecord(event, metaOf(event)))

/** Returns the events as a consumer gets them. */
export const asRecorded = (...events: SessionEvent[]): RecordedEvent[] =>
  recordsOf(...events).map(({ value, ...record }, offset) =>
    codec.fromRecord({
      ...record,
      value: value ?? Buffer.alloc(0),
      partition: 0,
      offset,
      timestamp: startedAt,
    }),
  )

/** Empties scoring's tables, as after the loss of the database. */
export const loseScoring = (pool: pg.Pool) =>
  pool.query(`truncate scoring.offsets, scoring.sessions, scoring.visitors, scoring.links, scoring.visitor_keys,
    scoring.attested_devices, scoring.agent_lookups, scoring.used_nonces`)

/** Returns an in-memory log, a clock and a database, which are empty at the start of each test. `start` starts scoring. */
export async function useScoring(from = startedAt) {
  const { pool, drop } = await createTestDatabase()
  const stops: (() => Promise<unknown>)[] = []
  const world = {
    now: from,
    log: createMemoryLog(),
    clock: () => world.now,
    pool,
    /** Dependencies of commands and lookups. */
    get parts() {
      return { log: world.log, pool, clock: world.clock, codec, logger: silent }
    },
    async start(overrides: Partial<ScoringOptions> = {}) {
      const { stop } = await startScoring({ ...world.parts, ...overrides })
      stops.push(stop)
      return stop
    },
    /** Stops everything, newest first. */
    async stop() {
      for (const stop of stops.splice(0).reverse()) await stop()
    },
    stopLater: (...more: (() => Promise<unknown>)[]) => void stops.push(...more),
    /** Restarts with only these records and an empty database. */
    async restartOn(records: LogRecord[]) {
      await world.stop()
      await loseScoring(pool)
      world.log = createMemoryLog({ now: world.clock })
      await world.log.append(records)
      await world.start()
      await world.log.settled()
    },
    async append(...events: SessionEvent[]) {
      await world.log.append(recordsOf(...events))
      await world.log.settled()
    },
    /** Returns the decisions, or those about the session, in log order. */
    decisions: (session?: TestSession): SessionScored[] => decisionsOn(world.log, session?.id),
    /** Appends the events, and returns the decisions that they trigger. */
    async decisionsOf(...events: SessionEvent[]): Promise<SessionScored[]> {
      const before = world.decisions().length
      await world.append(...events)
      return world.decisions().slice(before)
    },
  }
  beforeEach(() => {
    world.now = from
    world.log = createMemoryLog({ now: world.clock })
  })
  afterEach(async () => {
    await world.stop()
    await loseScoring(pool)
  })
  afterAll(drop)
  return world
}

export function decisionsOn({ records }: MemoryLog, sessionId?: string): SessionScored[] {
  return records
    .filter(({ topic, key }) => topic === 'tidegate.sessions.v1' && key === (sessionId ?? key))
    .map((record) => codec.fromRecord(record))
    .flatMap(({ type, data }) => (type === 'SessionScored' ? [data] : []))
}

/** Returns a log and a database with these read models until the end of the file. `score` starts scoring. */
export async function openScoringDatabase(...projections: Projection[]) {
  const world = await openProjectionWorld()
  const { pool, url } = world.database
  const log = await openPostgresLog({ pool, url, logger: silent })
  await log.ensureTopics(scoringTopics)
  const applied = await world.openApplied()
  for (const projection of projections) await world.run(log, projection, { applied })

  const started: RunningScoring[] = []
  afterAll(async () => {
    for (const { stop } of started) await stop()
    await log.close()
    await world.close()
  })

  const append = (...events: SessionEvent[]): Promise<Position[]> =>
    log.append(recordsOf(...events))

  /** Resolves to the decision once all read models have it. */
  async function decision(id: string): Promise<SessionScored> {
    const value = await eventually(async () => {
      const text = 'select event from read.decisions where event_id = $1'
      const { rows } = await pool.query<{ event: Buffer }>(text, [id])
      if (!rows[0]) throw new Error('no decision yet')
      return rows[0].event
    })
    const ends = (await log.endPositions('tidegate.sessions.v1'))
      .filter(({ offset }) => offset > 0)
      .map((end) => ({ ...end, offset: end.offset - 1 }))
    for (const { name } of projections) await applied.waitFor(name, ends)
    const event = codec.decode(value)
    if (event.type !== 'SessionScored') throw new Error(event.type)
    return event.data
  }

  return {
    log,
    pool,
    applied,
    append,
    decision,
    async score(overrides: Partial<ScoringOptions> = {}) {
      const running = await startScoring({ log, pool, applied, ...overrides })
      started.push(running)
      return running
    },
    /** Appends a session with a hand-off after one second, and returns the decision. */
    async decided(session: TestSession, behavior?: object): Promise<SessionScored> {
      const { openedAt } = session
      const request = handOff(session, { observations: { behavior }, at: openedAt + 1000 })
      await append(...opened(session), batch(session, { at: openedAt + 200 }), request)
      return decision(request.data.decision_id)
    },
  }
}

export type ScoringDatabase = Awaited<ReturnType<typeof openScoringDatabase>>
