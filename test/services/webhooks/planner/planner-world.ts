import { randomBytes } from 'node:crypto'
import type { Applied } from '../../../../infra/event-store/applied.ts'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import type { EventLog, Position } from '../../../../infra/log/port.ts'
import { sessionsProjection } from '../../../../projections/sessions/projection.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import type {
  SessionScored,
  WebhookEndpointCreated,
  WebhookEventRaised,
} from '../../../../schemas/events.ts'
import { type RunningPlanner, runPlanner } from '../../../../services/webhooks/planner/planner.ts'
import { eachBatch } from '../../../support/each-batch.ts'
import { eventually } from '../../../support/eventually.ts'
import type { TestLog } from '../../../support/logs.ts'
import { noSkips } from '../../../support/no-skips.ts'
import { ensureTopics, openProjectionWorld, silent } from '../../../support/projections.ts'
import { metaOf, sessionScored } from '../../../support/session-scored.ts'

export const now = 1_760_000_060_000
const patience = { timeoutMs: 30_000 }
const hex = (bytes: number) => randomBytes(bytes).toString('hex')
export const newId = (prefix: string) => `${prefix}_${hex(13)}`

export interface StartOptions {
  log?: EventLog
  onHalt?: (line: unknown) => void
}

/** A real log and database, the webhooks read model, and planners that come and go. */
export async function openPlannerWorld(testLog: TestLog) {
  const world = await openProjectionWorld()
  const { pool } = world.database
  const log = await testLog.open()
  await ensureTopics(log, 2)
  const applied: Applied = await world.openApplied()
  async function project(from = log): Promise<void> {
    await world.run(from, webhooksProjection, { applied })
    await world.run(log, sessionsProjection, { applied })
  }
  await project()
  const raised: WebhookEventRaised[] = []
  const read = new Map<number, number>()
  const reader = await log.consume({
    group: 'reader',
    topics: ['tidegate.webhooks.v1'],
    handle: eachBatch(({ partition, records }) => {
      const events = records.map(world.codec.fromRecord)
      raised.push(
        ...events.flatMap(({ type, data }) => (type === 'WebhookEventRaised' ? [data] : [])),
      )
      read.set(partition, (records.at(-1)?.offset ?? 0) + 1)
    }),
  })
  const planners: RunningPlanner[] = []

  async function start(options: StartOptions = {}): Promise<RunningPlanner> {
    const logger = silent.child({}, { level: 'silent' })
    logger.error = (...line: unknown[]) => options.onHalt?.(line)
    const clock = () => now
    const shared = { pool, codec: world.codec, applied, clock, logger, skips: noSkips }
    const planner = await runPlanner({ ...shared, log: options.log ?? log })
    planners.push(planner)
    return planner
  }

  async function append(
    event: DomainEvent,
    about: Parameters<typeof metaOf>[0],
  ): Promise<Position[]> {
    return world.append(log, [{ event, meta: { ...metaOf(about), eventId: newId('evt') } }])
  }

  async function apply(event: DomainEvent, organization_id: string, isSeen = true): Promise<void> {
    const positions = await append(event, { event_id: '', organization_id, environment: 'live' })
    if (isSeen) await applied.waitFor('webhooks', positions, { timeoutMs: 20_000 })
  }

  /** An endpoint that is there when it resolves, unless the read model is stopped. Returns its id. */
  async function endpoint(
    organizationId: string,
    some: Partial<WebhookEndpointCreated> = {},
    { isSeen = true } = {},
  ): Promise<string> {
    const data: WebhookEndpointCreated = {
      organization_id: organizationId,
      endpoint_id: `we_${hex(16)}`,
      environment: 'live',
      name: 'Hooks',
      url: 'https://hooks.example/',
      event_types: ['session.fingerprint.calculated', 'session.result.persisted'],
      signing_secret_sealed: Buffer.from('sealed'),
      created_at: now,
      ...some,
    }
    await apply({ type: 'WebhookEndpointCreated', data }, organizationId, isSeen)
    return data.endpoint_id
  }

  async function disable(organizationId: string, endpointId: string): Promise<void> {
    const data = {
      organization_id: organizationId,
      endpoint_id: endpointId,
      reason: 'manual',
      disabled_at: now,
    } as const
    await apply({ type: 'WebhookEndpointDisabled', data }, organizationId)
  }

  async function decision(some: Partial<SessionScored>): Promise<Position> {
    const data = sessionScored({ event_id: newId('evt'), ...some })
    const [position] = await append({ type: 'SessionScored', data }, data)
    if (!position) throw new Error('nothing appended')
    return position
  }

  /** Resolves when everything appended before has been planned: a later decision of each partition has been. */
  async function planned(): Promise<void> {
    const missing = new Set(
      (await log.endPositions('tidegate.sessions.v1')).map(({ partition }) => partition),
    )
    while (missing.size > 0) {
      const session_id = newId('sid')
      if (!missing.delete(await log.partitionOf('tidegate.sessions.v1', session_id))) continue
      await decision({ session_id, organization_id: newId('org') })
    }
    const decided = await log.endPositions('tidegate.sessions.v1')
    await eventually(() => {
      const statuses = planners.flatMap((planner) => planner.status())
      const isPast = ({ partition, offset }: Position) =>
        statuses.some((status) => status.partition === partition && status.nextOffset >= offset)
      if (!decided.every(isPast)) throw new Error('decisions are still being planned')
    }, patience)
    const ends = await log.endPositions('tidegate.webhooks.v1')
    await eventually(() => {
      const unread = ends.filter(({ partition, offset }) => (read.get(partition) ?? 0) < offset)
      if (unread.length > 0) throw new Error(`not read up to ${JSON.stringify(unread)}`)
    }, patience)
  }

  return {
    pool,
    log,
    start,
    project,
    stopProjection: world.stopRunners,
    endpoint,
    disable,
    decision,
    planned,
    raisedOf: (sessionId: string) =>
      raised
        .filter(({ subject_id }) => subject_id === sessionId)
        .sort((a, b) => a.type.localeCompare(b.type)),
    async readable(): Promise<void> {
      const ends = await log.endPositions('tidegate.webhooks.v1')
      const last = ends
        .filter(({ offset }) => offset > 0)
        .map((end) => ({ ...end, offset: end.offset - 1 }))
      await applied.waitFor('webhooks', last, { timeoutMs: 20_000 })
    },
    async deliveries(sessionId: string): Promise<string[]> {
      const { rows } = await pool.query<{ delivery: string }>(
        `select d.event_type || ' ' || d.endpoint_id as delivery
         from read.webhook_deliveries d join read.webhook_events e using (event_id)
         where e.subject_id = $1 order by 1`,
        [sessionId],
      )
      return rows.map(({ delivery }) => delivery)
    },
    async stopPlanners() {
      for (const planner of planners.splice(0)) await planner.stop()
    },
    async close() {
      for (const planner of planners.splice(0)) await planner.stop()
      await reader.stop()
      await world.stopRunners()
      await testLog.cleanup()
      await world.close()
    },
  }
}

export type PlannerWorld = Awaited<ReturnType<typeof openPlannerWorld>>

/** The log as a consumer group sees it that has committed nothing. */
export function afresh(log: EventLog): EventLog {
  return {
    ...log,
    consume: (options) => log.consume({ ...options, group: `${options.group}.${hex(4)}` }),
  }
}
