import { randomBytes } from 'node:crypto'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import { lastPositions } from '../../infra/event-store/catch-up.ts'
import { createDecide } from '../../infra/event-store/decide.ts'
import type { DomainEvent, RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import type { RunningProjection } from '../../infra/event-store/runner.ts'
import { randomId } from '../../infra/ids.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { createAddressRules } from '../../infra/safe-http/addresses.ts'
import { gateProjection } from '../../projections/gate/projection.ts'
import { organizationsProjection } from '../../projections/organizations/projection.ts'
import { webhooksProjection } from '../../projections/webhooks/projection.ts'
import type { Environment } from '../../schemas/events.ts'
import { createMemoryLog } from './memory-log.ts'
import { ensureTopics, openProjectionWorld, silent, testCause, tester } from './projections.ts'

export interface ServiceWorldOptions {
  /** Read models to run. Default: all except that of sessions. */
  projections?: Projection[]
  /** Default: in Postgres, for tests that read its tables. */
  log?: 'memory' | 'postgres'
}

const most = [organizationsProjection, webhooksProjection, gateProjection]

interface About {
  organizationId: string | null
  environment: Environment | null
}

/** Opens a log, read models, new master keys and a clock that the test sets. */
export async function openServiceWorld({
  projections = most,
  log: logKind = 'postgres',
}: ServiceWorldOptions = {}) {
  const world = await openProjectionWorld()
  const { codec } = world
  const { pool, url } = world.database
  const memoryLog = logKind === 'memory' ? createMemoryLog() : undefined
  const log = memoryLog ?? (await openPostgresLog({ pool, url, logger: silent }))
  await ensureTopics(log)
  const applied = await world.openApplied()
  const running = new Map<Projection, RunningProjection>()
  const run = async (projection: Projection) => {
    // Without delay, because tests wait for each event.
    const prompt = { ...projection, batchDelayMs: 0 }
    running.set(projection, await world.run(log, prompt, { applied }))
  }
  for (const projection of projections) await run(projection)
  const now = { ms: 1_760_000_000_000 }
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const base = { pool, keyring, clock: () => now.ms, random: randomBytes, logger: silent }
  const decideAs = createDecide({ pool, log, codec, applied, timeoutMs: 30_000 })

  /** Appends events of an organization without waiting. */
  function write(of: About, ...events: DomainEvent[]) {
    const meta = ({ data }: DomainEvent) => {
      const eventId = 'event_id' in data ? data.event_id : randomId('evt', randomBytes)
      return { eventId, time: now.ms, ...of }
    }
    return log.append(events.map((event) => codec.toRecordWithCause(event, meta(event), testCause)))
  }

  /** Resolves when all running read models have applied the log. */
  async function caughtUp(): Promise<void> {
    for (const { name, topics } of running.keys()) {
      const ends = await Promise.all(topics.map((topic) => log.endPositions(topic)))
      await applied.waitFor(name, lastPositions(ends.flat()), { timeoutMs: 20_000 })
    }
  }

  return {
    pool,
    url,
    log,
    codec,
    applied,
    now,
    /** Dependencies without the log. */
    base,
    /** Dependencies of commands. */
    deps: { ...base, decideAs, decide: decideAs(tester), rules: createAddressRules([]) },
    write,
    caughtUp,
    /** Returns all events of an in-memory log, in order. */
    async events(): Promise<RecordedEvent[]> {
      if (!memoryLog) throw new Error('only a log in memory can be looked at')
      return memoryLog.records.map((record) => codec.fromRecord(record))
    },
    /** Appends events of an organization, and waits until the read model has applied them. */
    async append(projection: Projection, of: About, ...events: DomainEvent[]): Promise<void> {
      const positions = await write(of, ...events)
      await applied.waitFor(projection.name, positions, { timeoutMs: 20_000 })
    },
    /** Stops the read model while `act` runs. */
    async without(projection: Projection, act: () => Promise<void>): Promise<void> {
      await running.get(projection)?.stop()
      try {
        await act()
      } finally {
        await run(projection)
      }
    },
    /** Counts the events of the type with that key on the log. */
    async count(type: DomainEvent['type'], key: string): Promise<number> {
      if (memoryLog) {
        const ofKey = memoryLog.records.filter((record) => record.key === key)
        return ofKey.filter((record) => codec.fromRecord(record).type === type).length
      }
      const { rows } = await pool.query<{ count: number }>(
        `select count(*)::int as count from tidegate_log.records where key = $1 and headers->>'event_type' = $2`,
        [key, type],
      )
      return rows[0]?.count ?? 0
    },
    /** Deletes stored idempotent responses, as if the process died before storing them. */
    loseAnswers: () =>
      pool.query('update tidegate.idempotency_keys set answer = null, expires_at = 0'),
    async close(): Promise<void> {
      await world.stopRunners()
      await log.close()
      await world.close()
    },
  }
}

export type ServiceWorld = Awaited<ReturnType<typeof openServiceWorld>>
