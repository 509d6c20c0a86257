import type pg from 'pg'
import type { AppliedOffsets } from '../../../infra/event-store/applied.ts'
import { lastPositions, waitForRecords } from '../../../infra/event-store/catch-up.ts'
import { processDueItems } from '../../../infra/flow/due-items.ts'
import type { Clock } from '../../../infra/ids.ts'
import { iso } from '../../../infra/iso.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { inSnapshot } from '../../../projections/sessions/aggregates.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import type { Notice } from '../../webhooks/events/schemas.ts'
import { countForAlert } from './alert-counts.ts'
import { alertValue, decideCheck } from './alert-decide.ts'
import {
  type AlertRow,
  type DueAlert,
  findDueAlerts,
  settingsOf,
  storeCheck,
} from './alert-store.ts'
import { conditionsOfView } from './schemas.ts'

export interface AlertCheckOptions {
  pool: pg.Pool
  readPool: pg.Pool
  log: Pick<EventLog, 'endPositions'>
  applied: Pick<AppliedOffsets, 'waitFor'>
  clock: Clock
  logger: Logger
  /** Raises a webhook event, once per type and occasion. */
  raise: (notice: Notice) => Promise<unknown>
}

/** Alerts are due this long after a check: less than the interval of the checks, so that none leaves one out. */
const recheckMs = 50_000
const catchUpMs = 2000

/**
 * Checks the alerts that are due, and returns their number; 0 while the sessions read model is behind the log. Any
 * number of processes may run this; one works at a time.
 */
export async function checkAlerts(options: AlertCheckOptions): Promise<number> {
  const { pool, readPool, log, applied, clock, logger } = options
  const { name: projection, topics } = sessionsProjection
  const ends = await Promise.all(topics.map((topic) => log.endPositions(topic)))
  const records = lastPositions(ends.flat())
  try {
    await waitForRecords(readPool, { applied, projection, records, timeoutMs: catchUpMs })
  } catch (err) {
    logger.warn({ err }, 'skipped alert checks: the sessions read model is behind')
    return 0
  }
  // Holds the lock on a read connection, because commands need those of the other pool.
  return processDueItems(readPool, 'alert-checks', {
    findDue: (tx, limit) => findDueAlerts(tx, { now: clock(), recheckMs, limit }),
    async work(alert) {
      const last_value = alert.is_announced ? null : alert.last_value
      const failed = { ...alert, last_value, last_checked_at: clock() }
      await checkAlert(options, alert).catch(async (err) => {
        logger.error({ err, alert_id: alert.id }, 'failed to check an alert; retrying')
        // The others come first in the next run. Has no effect once the check is stored.
        await storeCheck(pool, alert, failed)
      })
      return true
    },
  })
}

/**
 * Commits the new state before it raises the event. If the process dies in between, the next check raises the event,
 * which has the same id.
 */
async function checkAlert(options: AlertCheckOptions, due: DueAlert): Promise<void> {
  const { pool, clock, raise } = options
  let alert: AlertRow = due
  if (due.is_announced) {
    const last_checked_at = clock()
    const last_value = await measure(options, due, last_checked_at)
    const check = { value: last_value, threshold: due.threshold, now: last_checked_at }
    const state = decideCheck(due.state, check)
    const is_announced = state.status === due.state.status
    alert = { ...due, state, is_announced, last_value, last_checked_at }
    if (!(await storeCheck(pool, due, alert)) || is_announced) return
  }
  await raise(noticeOf(alert))
  await storeCheck(pool, alert, { ...alert, is_announced: true })
}

/** Returns the alert's value; null if the view's query is invalid or there are too few sessions. */
async function measure(
  { readPool, logger }: AlertCheckOptions,
  alert: DueAlert,
  until: number,
): Promise<number | null> {
  const conditions = conditionsOfView(alert.query)
  if (!conditions) {
    logger.warn({ alert_id: alert.id }, 'skipped an alert: the query of its view is invalid')
    return null
  }
  return inSnapshot(readPool, async (tx) =>
    alertValue(alert.kind, await countForAlert(tx, alert, { conditions, until })),
  )
}

/** Returns the webhook event, with ids and numbers only: the view's name and query may name a person. */
function noticeOf(row: AlertRow): Notice {
  const { organization_id: organizationId, environment, state, last_value: value } = row
  const alert = settingsOf(row)
  const isOpen = state.status === 'open'
  const at = (isOpen ? state.opened_at : state.closed_at) ?? row.updated_at
  return {
    type: isOpen ? 'alert.opened' : 'alert.closed',
    organizationId,
    environment,
    occasion: `${alert.id} ${iso(at)}`,
    subject: { type: 'alert', id: alert.id },
    at,
    data: { object: 'alert', alert, value, at: iso(at) },
  }
}
