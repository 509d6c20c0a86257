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

/** Scoring that was taught, with keys in memory, no networks, nothing to skip and a read model that is never behind. */
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

/** As a batch of records has the events. */
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

/** Empties what scoring keeps, as where the database was lost. */
export const loseScoring = (pool: pg.Pool) =>
  pool.query(`truncate scoring.offsets, scoring.sessions, scoring.visitors, scoring.links, scoring.visitor_keys,
    scoring.attested_devices, scoring.agent_lookups, scoring.used_nonces`)

/** A log in memory, a clock and a database, which each test of the file finds empty. Scoring runs from `start` on. */
export async function useScoring(from = startedAt) {
  const { pool, drop } = await createTestDatabase()
  const stops: (() => Promise<unknown>)[] = []
  const world = {
    now: from,
    log: createMemoryLog(),
    clock: () => world.now,
    pool,
    /** The dependencies of commands and look-ups. */
    get parts() {
      return { log: world.log, pool, clock: world.clock, codec, logger: silent }
    },
    async start(some: Partial<ScoringOptions> = {}) {
      const { stop } = await startScoring({ ...world.parts, ...some })
      stops.push(stop)
      return stop
    },
    /** Stops all that runs, newest first. */
    async stop() {
      for (const stop of stops.splice(0).reverse()) await stop()
    },
    stopLater: (...more: (() => Promise<unknown>)[]) => void stops.push(...more),
    /** Goes on with these records alone, in an empty database. */
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
    /** All decisions, or those about a session, in the order in which they were made. */
    decisions: (session?: TestSession): SessionScored[] => decisionsOn(world.log, session?.id),
    /** The decisions that the events lead to. */
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

/** A log and a database with these read models, for scoring that `score` starts. All of it ends with the file. */
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

  /** The decision, once all read models show it. */
  async function decision(id: string): Promise<SessionScored> {
    const value = await eventually(async () => {
      const text = 'select event from read.decisions where event_id = $1'
      const { rows } = await pool.query<{ event: Buffer }>(text, [id])
      if (!rows[0]) throw new Error('it is not decided')
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
    async score(some: Partial<ScoringOptions> = {}) {
      const running = await startScoring({ log, pool, applied, ...some })
      started.push(running)
      return running
    },
    /** The decision about the hand-off of a new session; a second after its opening. */
    async decided(session: TestSession, behavior?: object): Promise<SessionScored> {
      const { openedAt } = session
      const request = handOff(session, { observations: { behavior }, at: openedAt + 1000 })
      await append(...opened(session), batch(session, { at: openedAt + 200 }), request)
      return decision(request.data.decision_id)
    },
  }
}

export type ScoringDatabase = Awaited<ReturnType<typeof openScoringDatabase>>
