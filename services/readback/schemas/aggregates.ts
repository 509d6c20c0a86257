import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { groupFields } from '../../../projections/sessions/count-groups.ts'

const count = z.int().min(0)
const group = z
  .strictObject({
    start: timestamp.nullable().describe('Start of the interval; null without intervals.'),
    kind: z
      .enum(['value', 'other', 'ended'])
      .describe(
        '`other`: all groups beyond `top`. `ended`: sessions whose decisions expired, so they can no longer be filtered or grouped.',
      ),
    values: z
      .partialRecord(z.enum(groupFields), z.string().nullable())
      .describe(
        'Values of the group, keyed by field; null if the sessions have no value. Empty for `other` and `ended`.',
      ),
    sessions: count,
  })
  .meta({ id: 'SessionGroup' })

export const aggregatesSchema = z
  .strictObject({
    object: z.literal('session_aggregates'),
    since: timestamp.describe(
      'Start of the counted period; the first session if the request had no `since`.',
    ),
    until: timestamp,
    is_complete: z
      .boolean()
      .describe(
        'False if there were too many sessions to read. The counts then cover only the newest ones, from `since` on.',
      ),
    sessions: count,
    ended: count.describe('Sessions whose decisions expired, not included in `sessions`.'),
    visitors: count.nullable().describe('Distinct visitors.'),
    users: count.nullable().describe('Distinct values of `client_user_id`.'),
    distinct_missing: z
      .enum(['over_seven_days', 'over_a_million_sessions', 'not_requested'])
      .nullable()
      .describe('Reason why `visitors` and `users` are null; otherwise null.'),
    groups: z.array(group),
  })
  .meta({ id: 'SessionAggregates' })

export type SessionAggregates = z.output<typeof aggregatesSchema>
