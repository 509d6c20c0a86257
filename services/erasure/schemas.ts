import { z } from 'zod'
import { timestamp } from '../../infra/http/schemas.ts'

export const erasureSchema = z
  .strictObject({
    object: z.literal('erasure'),
    id: z.string(),
    visitor_id: z.string().nullable().describe('Null where the erasure of a user was asked for.'),
    session_ids: z.array(z.string()),
    counts: z.record(z.string(), z.int()).describe('What went, by kind.'),
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
      .describe(
        'What was said of the sessions when they were given to another visitor, oldest first.',
      ),
    sessions: z.array(
      z.strictObject({
        id: z.string(),
        visitor_id: z.string().nullable(),
        client_users: z.array(
          z.strictObject({ client_user_id: z.string().nullable(), event_id: z.string() }),
        ),
        decisions: z.array(z.looseObject({})).describe('Each as the log has it, oldest first.'),
        marks: z
          .array(z.looseObject({}))
          .describe('What the session was said to be, oldest first.'),
        webhook_events: z.array(z.looseObject({})),
        state: z
          .looseObject({})
          .nullable()
          .describe('What was observed, for a day after the opening.'),
        link: z
          .looseObject({})
          .nullable()
          .describe(
            'How the session came to its visitor, and what the visitor is found by through it.',
          ),
      }),
    ),
  })
  .meta({ id: 'PersonExport' })
