import { ApiError, invalidField } from '../../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  type EventIdAndTime,
  eventAbout,
} from '../../../infra/event-store/decide.ts'
import type { AlertEdit, AlertRow, AlertState } from './alert-store.ts'
import type { ViewRow } from './store.ts'

export const alertLimits = { alerts: 50, windowMinutes: { min: 5, max: 1440 } } as const

const quietChecksToClose = 3

/** Returns the state after a check. Without a value, the check is quiet. */
export function decideCheck(
  state: AlertState,
  { value, threshold, now }: { value: number | null; threshold: number; now: number },
): AlertState {
  const isReached = value !== null && value >= threshold
  if (state.status === 'quiet')
    return isReached ? { status: 'open', opened_at: now, closed_at: null, quiet_checks: 0 } : state
  const quiet_checks = isReached ? 0 : state.quiet_checks + 1
  if (quiet_checks < quietChecksToClose) return { ...state, quiet_checks }
  return { status: 'quiet', opened_at: state.opened_at, closed_at: now }
}

export interface AlertCounts {
  matching: number
  /** All sessions of the window. */
  total: number
  /** Matches in the same window of each day before. */
  before: number[]
}

// With fewer sessions, a share or multiple says little.
const minSessions = 20

const rounded = (value: number) => Math.round(value * 100) / 100

/** Returns the value to compare with the threshold; null if there are too few sessions. */
export function alertValue(kind: AlertRow['kind'], counts: AlertCounts): number | null {
  const { matching, total, before } = counts
  if (kind === 'count') return matching
  if (kind === 'share') return total < minSessions ? null : rounded((100 * matching) / total)
  if (matching < minSessions || before.length === 0) return null
  const mean = before.reduce((sum, sessions) => sum + sessions, 0) / before.length
  // A rare match before would give a huge multiple.
  return rounded(matching / Math.max(1, mean))
}

const settings = ['kind', 'threshold', 'window_minutes'] as const

/** Returns no edit if the alert is the same. Throws 409 at the limit, 422 for an unknown view or a bad threshold. */
export function decideAlertSave(
  alerts: readonly AlertRow[],
  views: readonly ViewRow[],
  alert: AlertRow,
): AlertEdit[] {
  const before = alerts.find(({ id }) => id === alert.id)
  if (before && settings.every((name) => before[name] === alert[name])) return []
  if (!views.some(({ id }) => id === alert.view_id))
    throw invalidField({ name: 'view_id', issue: 'not_found', received: alert.view_id })
  if (!before && alerts.length >= alertLimits.alerts)
    throw new ApiError('request.conflict', {
      message: `An environment may have ${alertLimits.alerts} alerts. Delete one first.`,
    })
  const { kind, threshold } = alert
  const [isValid, expected] = thresholds[kind]
  // More decimals than values have would never be reached exactly.
  if (!isValid(threshold) || threshold !== rounded(threshold))
    throw invalidField({
      name: 'threshold',
      issue: 'invalid',
      expected: `${expected} for the kind ${kind}`,
      received: threshold,
    })
  return [{ type: 'AlertSaved', alert }]
}

type AlertUpdate = { [Name in (typeof settings)[number]]?: AlertRow[Name] | undefined }

/** Throws 404 if the alert does not exist, and the errors of `decideAlertSave`. */
export function decideAlertUpdate(
  alerts: readonly AlertRow[],
  views: readonly ViewRow[],
  { id, now, ...changes }: AlertUpdate & { id: string; now: number },
): AlertEdit[] {
  const alert = requireAlert(alerts, id)
  const { kind = alert.kind, threshold = alert.threshold } = changes
  const { window_minutes = alert.window_minutes } = changes
  const changed = { ...alert, kind, threshold, window_minutes, updated_at: now }
  return decideAlertSave(alerts, views, changed)
}

// Valid thresholds of each kind, as a condition and in words.
const thresholds: Record<AlertRow['kind'], [(threshold: number) => boolean, string]> = {
  count: [(n) => Number.isInteger(n) && n >= 1 && n <= 1_000_000, 'an integer from 1 to 1000000'],
  share: [(n) => n > 0 && n <= 100, 'a percentage above 0, at most 100, with at most two decimals'],
  multiple: [
    (n) => n > 1 && n <= 1000,
    'a number above 1, at most 1000, with at most two decimals',
  ],
}

export function requireAlert(alerts: readonly AlertRow[], id: string): AlertRow {
  const alert = alerts.find((alert) => alert.id === id)
  if (alert) return alert
  throw new ApiError('request.not_found', {
    message: 'No alert with this id exists in this environment.',
  })
}

export function alertEvent(
  { type, alert }: AlertEdit,
  { eventId, now }: EventIdAndTime,
): DecidedEvent {
  const { id: alert_id, organization_id, environment, view_id } = alert
  const { kind, threshold, window_minutes } = alert
  const ids = { organization_id, environment, alert_id, view_id }
  const saved = { ...ids, kind, threshold, window_minutes, saved_at: now }
  return type === 'AlertSaved'
    ? eventAbout(alert, { type, data: saved }, { eventId, now })
    : eventAbout(alert, { type, data: { ...ids, deleted_at: now } }, { eventId, now })
}
