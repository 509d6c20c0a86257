import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { watchedFields } from '../../../projections/sessions/anomaly-counts.ts'

const count = z.int().min(0)
const factor = z.number().min(0)

const anomaly = z
  .strictObject({
    values: z
      .array(z.strictObject({ field: z.enum(watchedFields), value: z.string(), sessions: count }))
      .describe(
        'Values that the sessions have in common, with the number of sessions that have each, most frequent first.',
      ),
    sessions: count.describe('Sessions in the hours in which they are far more than before.'),
    expected: factor.describe('Sessions expected from the baseline and the other sessions.'),
    lift: factor.describe('Share of all sessions, divided by the share in the baseline, smoothed.'),
    bots: count.describe('Sessions with the verdict `bot`.'),
    bot_lift: factor.describe('Share of the bots, divided by the share of the other sessions.'),
    started_at: timestamp.describe('Time of the first session above expectation.'),
    ended_at: timestamp.describe('End of the last five minutes above expectation.'),
    series: z
      .array(z.strictObject({ start: timestamp, sessions: count, expected: factor }))
      .describe('Sessions by hour, or by five minutes if the period is at most three hours.'),
  })
  .meta({ id: 'SessionAnomaly' })

export const anomaliesSchema = z
  .strictObject({
    object: z.literal('session_anomalies'),
    since: timestamp.describe(
      'Start of the compared period: later than requested if that was longer than a day, or if there is nothing to compare its start with.',
    ),
    until: timestamp,
    has_history: z
      .boolean()
      .describe('False until there are a day of sessions and at least 50 to compare with.'),
    baseline_days: z
      .int()
      .min(0)
      .max(7)
      .describe('Number of preceding days whose same hours are the baseline.'),
    is_complete: z
      .boolean()
      .describe('False if there were too many sessions to read. `since` is then later, too.'),
    sessions: count,
    anomalies: z.array(anomaly).describe('At most five, highest lift first.'),
  })
  .meta({ id: 'SessionAnomalies' })

export type SessionAnomalies = z.output<typeof anomaliesSchema>
