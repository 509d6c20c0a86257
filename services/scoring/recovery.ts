import type pg from 'pg'
import type { Applied } from '../../infra/event-store/applied.ts'
import type { EventLog } from '../../infra/log/port.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { findDecisions } from '../../projections/sessions/queries.ts'
import { eventTopics } from '../../schemas/events.ts'
import type { RecordedVisitor } from './visitors/resolve.ts'

export interface RecoveryDeps {
  log: EventLog
  pool: pg.Pool
  applied: Pick<Applied, 'waitFor'>
  logger: Logger
}

export interface Recovery {
  /** Records before `until` (a next offset) of the partition may have been scored by someone who then crashed. */
  suspect(partition: number, until: number): void
  /** The visitors that were recorded with decisions of these ids; asks only where a record is suspect. */
  findRecorded(
    at: { partition: number; offset: number },
    ids: string[],
  ): Promise<Map<string, RecordedVisitor>>
}

const waitMs = 2000

/**
 * Between appending decisions and committing its state, scoring can crash. Whoever repeats the records makes the same
 * decision ids but might find another visitor, since other sessions were scored meanwhile: so it adopts the visitors
 * that are recorded.
 */
export function createRecovery({ log, pool, applied, logger }: RecoveryDeps): Recovery {
  const suspects = new Map<number, { until: number; ready?: Promise<void> }>()

  async function readable(): Promise<void> {
    const ends = await log.endPositions(eventTopics.SessionScored)
    const last = ends.filter(({ offset }) => offset > 0).map((end) => ({ ...end, offset: end.offset - 1 }))
    await applied.waitFor('sessions', last, { timeoutMs: waitMs }).catch((err) => {
      // Scoring goes on: without the read model it can at worst link a repeated session to a new visitor.
      logger.warn({ err }, 'earlier decisions are not readable yet')
    })
  }

  return {
    suspect(partition, until) {
      suspects.set(partition, { until: Math.max(until, suspects.get(partition)?.until ?? 0) })
    },
    async findRecorded({ partition, offset }, ids) {
      const suspect = suspects.get(partition)
      if (!suspect || offset >= suspect.until) {
        suspects.delete(partition)
        return new Map()
      }
      if (ids.length === 0) return new Map()
      suspect.ready ??= readable()
      await suspect.ready
      const decisions = await findDecisions(pool, ids)
      return new Map(
        decisions.flatMap(({ event_id, visitor }) => (visitor ? [[event_id, visitor] as const] : [])),
      )
    },
  }
}
