import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { groupFields } from '../../../projections/sessions/count-groups.ts'

const count = z.int().min(0)
const group = z
  .strictObject({
    start: timestamp.nullable().describe('Of the interval; null without intervals.'),
    kind: z
      .enum(['value', 'other', 'ended'])
      .describe(
        '`other`: all groups but the largest ones. `ended`: sessions whose decisions have ended, of which filters or groups ask what is gone.',
      ),
    values: z
      .partialRecord(z.enum(groupFields), z.string().nullable())
      .describe('By field; null where sessions have no value. Empty for `other` and `ended`.'),
    sessions: count,
  })
  .meta({ id: 'SessionGroup' })

export const aggregatesSchema = z
  .strictObject({
    object: z.literal('session_aggregates'),
    since: timestamp.describe(
      'From when on sessions were counted: the first one without another time.',
    ),
    until: timestamp,
    is_complete: z
      .boolean()
      .describe(
        'False where there are too many sessions to read: the numbers are of the newest ones, from `since` on.',
      ),
    sessions: count,
    ended: count.describe('Not among `sessions`: see `kind`.'),
    visitors: count.nullable().describe('Distinct ones.'),
    users: count.nullable().describe('Distinct values of client_user_id.'),
    distinct_missing: z
      .enum(['over_seven_days', 'over_a_million_sessions'])
      .nullable()
      .describe('Why there are no numbers of visitors and users.'),
    groups: z.array(group),
  })
  .meta({ id: 'SessionAggregates' })

export type SessionAggregates = z.output<typeof aggregatesSchema>
