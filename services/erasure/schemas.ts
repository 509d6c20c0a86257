import { z } from 'zod'
import { timestamp } from '../../infra/http/schemas.ts'

export const erasureSchema = z
  .strictObject({
    object: z.literal('erasure'),
    id: z.string(),
    visitor_id: z
      .string()
      .nullable()
      .describe('Erased visitor; null if a user or Gate account was erased.'),
    session_ids: z.array(z.string()),
    counts: z.record(z.string(), z.int()).describe('Number of erased items by kind.'),
    erased_at: timestamp,
  })
  .meta({ id: 'Erasure' })

export type Erasure = z.output<typeof erasureSchema>

export const exportSchema = z
  .strictObject({
    object: z.literal('person_export'),
    visitors: z.array(z.looseObject({})),
    corrections: z
      .array(z.looseObject({}))
      .describe('Splits and merges that moved these sessions, oldest first.'),
    sessions: z.array(
      z.strictObject({
        id: z.string(),
        visitor_id: z.string().nullable(),
        client_users: z.array(
          z.strictObject({ client_user_id: z.string().nullable(), event_id: z.string() }),
        ),
        decisions: z
          .array(z.looseObject({}))
          .describe('Decisions as recorded on the log, oldest first.'),
        marks: z
          .array(z.looseObject({}))
          .describe('Marks of the session, oldest first. Removed ones have `is_removed`.'),
        webhook_events: z.array(z.looseObject({})),
        state: z
          .looseObject({})
          .nullable()
          .describe(
            'Observed data in the scoring state, available for a day after the session opened.',
          ),
        link: z
          .looseObject({})
          .nullable()
          .describe('Match of the session to its visitor, and the matching keys it contributed.'),
      }),
    ),
  })
  .meta({ id: 'PersonExport' })
