import { type Logger, pino } from 'pino'
import { type AppliedOffsets, createAppliedOffsets } from '../../infra/event-store/applied.ts'
import { createCodec, type EventCodec } from '../../infra/event-store/codec.ts'
import { createDecide, type DecideAs } from '../../infra/event-store/decide.ts'
import type { DomainEvent, EventMeta } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { type RunningProjection, runProjection } from '../../infra/event-store/runner.ts'
import type { EventLog, Topic } from '../../infra/log/port.ts'
import { auditProjection } from '../../projections/audit/projection.ts'
import { gateProjection } from '../../projections/gate/projection.ts'
import { organizationsProjection } from '../../projections/organizations/projection.ts'
import { policiesProjection } from '../../projections/policies/projection.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { webhooksProjection } from '../../projections/webhooks/projection.ts'
import { noSkips } from './no-skips.ts'
import { createTestDatabase, type TestDatabase } from './postgres.ts'

export interface RunOptions {
  applied?: AppliedOffsets
  logger?: Logger
}

export interface ProjectionWorld {
  database: TestDatabase
  codec: EventCodec
  /** Opens applied offsets like another process. */
  openApplied(): Promise<AppliedOffsets>
  openDecide(log: EventLog): Promise<DecideAs>
  run(log: EventLog, projection: Projection, options?: RunOptions): Promise<RunningProjection>
  /** Stops all runners that `run` started. */
  stopRunners(): Promise<void>
  append(
    log: EventLog,
    events: { event: DomainEvent; meta: EventMeta }[],
  ): ReturnType<EventLog['append']>
  close(): Promise<void>
}

/** Actor of events that a test writes. */
export const tester = { type: 'operator', id: 'test' } as const
export const testCause = { actor: tester, request_id: null }

export const silent = pino({ level: 'silent' })
const projections = [
  organizationsProjection,
  policiesProjection,
  sessionsProjection,
  gateProjection,
  webhooksProjection,
  auditProjection,
]

/** Creates a database with the read models. `close` stops everything that was started through it. */
export async function openProjectionWorld(): Promise<ProjectionWorld> {
  const database = await createTestDatabase()
  const { pool, url } = database
  const codec = createCodec()
  const closing: (() => Promise<void>)[] = []
  const runners: RunningProjection[] = []

  async function openApplied(): Promise<AppliedOffsets> {
    const applied = await createAppliedOffsets({ url, pool, logger: silent })
    closing.push(() => applied.close())
    return applied
  }

  async function stopRunners(): Promise<void> {
    await Promise.all(runners.splice(0).map((running) => running.stop()))
  }

  return {
    database,
    codec,
    openApplied,
    stopRunners,
    async openDecide(log) {
      return createDecide({ pool, log, codec, applied: await openApplied() })
    },
    async run(log, projection, options = {}) {
      const applied = options.applied ?? (await openApplied())
      const running = await runProjection({
        projection,
        log,
        pool,
        codec,
        applied,
        logger: options.logger ?? silent,
        skips: noSkips,
      })
      runners.push(running)
      return running
    },
    append: (log, events) =>
      log.append(events.map(({ event, meta }) => codec.toRecordWithCause(event, meta, testCause))),
    async close() {
      await stopRunners()
      for (const step of closing.toReversed()) await step()
      await database.drop()
    },
  }
}

/** Creates the topics of the read models, with few partitions so that keys share them. */
export async function ensureTopics(log: EventLog, partitions = 3): Promise<void> {
  const topics = new Set<Topic>(projections.flatMap((projection) => projection.topics))
  await log.ensureTopics([...topics].map((topic) => ({ topic, partitions })))
}
