import { isDeepStrictEqual } from 'node:util'
import { ApiError, invalidField } from '../../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  type EventIdAndTime,
  eventAbout,
} from '../../../infra/event-store/decide.ts'
import { type AlertEdit, type AlertRow, type AlertState, settingsOf } from './alert-store.ts'
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

/** Returns the value to compare with the threshold; null if there are too few sessions. */
export function alertValue(kind: AlertRow['kind'], counts: AlertCounts): number | null {
  const { matching, total, before } = counts
  const rounded = (value: number) => Math.round(value * 100) / 100
  if (kind === 'count') return matching
  if (kind === 'share') return total < minSessions ? null : rounded((100 * matching) / total)
  if (matching < minSessions || before.length === 0) return null
  const mean = before.reduce((sum, sessions) => sum + sessions, 0) / before.length
  // A rare match before would give a huge multiple.
  return rounded(matching / Math.max(1, mean))
}

const thresholds = {
  count: { min: 1, max: 1_000_000, decimals: 0 },
  share: { min: 0.01, max: 100, decimals: 2 },
  multiple: { min: 1.01, max: 1000, decimals: 2 },
} as const

/** Returns no edit if the alert is the same. Throws 409 at the limit, 422 for an unknown view or a bad threshold. */
export function decideAlertSave(
  alerts: readonly AlertRow[],
  views: readonly ViewRow[],
  alert: AlertRow,
): AlertEdit[] {
  const before = alerts.find(({ id }) => id === alert.id)
  if (before && isDeepStrictEqual(settingsOf(before), settingsOf(alert))) return []
  if (!views.some(({ id }) => id === alert.view_id))
    throw invalidField({ name: 'view_id', issue: 'not_found', received: alert.view_id })
  if (!before && alerts.length >= alertLimits.alerts)
    throw new ApiError('request.conflict', {
      message: `An environment may have ${alertLimits.alerts} alerts. Delete one first.`,
    })
  const { kind, threshold } = alert
  const { min, max, decimals } = thresholds[kind]
  const isValid =
    threshold >= min && threshold <= max && threshold === Number(threshold.toFixed(decimals))
  if (!isValid)
    throw invalidField({
      name: 'threshold',
      issue: 'invalid',
      expected: `${decimals === 0 ? 'an integer' : 'a number with at most two decimals'} from ${min} to ${max} for the kind ${kind}`,
      received: threshold,
    })
  return [{ type: 'AlertSaved', alert }]
}

type AlertUpdate = {
  [Name in 'kind' | 'threshold' | 'window_minutes']?: AlertRow[Name] | undefined
}

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

export function requireAlert(alerts: readonly AlertRow[], id: string): AlertRow {
  const alert = alerts.find((alert) => alert.id === id)
  if (alert) return alert
  throw new ApiError('request.not_found', {
    message: 'No alert with this id exists in this environment.',
  })
}

export function alertEvent({ type, alert }: AlertEdit, about: EventIdAndTime): DecidedEvent {
  const { organization_id, environment } = alert
  const { id: alert_id, view_id, ...settings } = settingsOf(alert)
  const ids = { organization_id, environment, alert_id, view_id }
  return type === 'AlertSaved'
    ? eventAbout(alert, { type, data: { ...ids, ...settings, saved_at: about.now } }, about)
    : eventAbout(alert, { type, data: { ...ids, deleted_at: about.now } }, about)
}
