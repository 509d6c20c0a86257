import { z } from 'zod'
import { atLeastOne, bodyId, timestamp } from '../../../infra/http/schemas.ts'
import { iso, isoOrNull } from '../../../infra/iso.ts'
import { alertLimits } from './alert-decide.ts'
import { type AlertRow, alertKinds, settingsOf } from './alert-store.ts'

const { min, max } = alertLimits.windowMinutes

const kind = z
  .enum(alertKinds)
  .describe(
    '`count`: sessions that match the view. `share`: their percentage of all sessions, if the window has at least 20. `multiple`: their number divided by its mean in the same window of up to seven days before, if there is a day of data and at least 20 sessions match.',
  )
const threshold = z
  .number()
  .describe(
    'Value at which the alert opens: for `count` an integer from 1 to 1000000, for `share` from 0.01 to 100, for `multiple` from 1.01 to 1000, with at most two decimals.',
  )
const windowMinutes = z
  .int()
  .min(min)
  .max(max)
  .describe('Length of the window that ends at the check.')

export const createAlertBody = z.strictObject({
  view_id: bodyId('view'),
  kind,
  threshold,
  window_minutes: windowMinutes.default(60),
})
export const updateAlertBody = atLeastOne({
  kind: kind.optional(),
  threshold: threshold.optional(),
  window_minutes: windowMinutes.optional(),
})

export const alertSchema = z
  .strictObject({
    object: z.literal('alert'),
    id: z.string(),
    view_id: z.string(),
    kind,
    threshold,
    window_minutes: windowMinutes,
    status: z.enum(['quiet', 'open']).describe('Open until three checks in a row are quiet.'),
    opened_at: timestamp.nullable().describe('Last time when it opened.'),
    closed_at: timestamp.nullable().describe('Null while open.'),
    last_value: z
      .number()
      .nullable()
      .describe('Null without a check, with too few sessions, or if the check failed.'),
    last_checked_at: timestamp.nullable(),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Alert' })

export function alertJson(alert: AlertRow) {
  const { status, opened_at, closed_at } = alert.state
  return {
    object: 'alert' as const,
    ...settingsOf(alert),
    status,
    opened_at: isoOrNull(opened_at),
    closed_at: isoOrNull(closed_at),
    last_value: alert.last_value,
    last_checked_at: isoOrNull(alert.last_checked_at),
    created_at: iso(alert.created_at),
    updated_at: iso(alert.updated_at),
  }
}
