import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { maxRelated, relatedFields } from '../../../projections/sessions/related.ts'
import { timelineKinds } from '../../../projections/sessions/timeline.ts'

export const relatedSchema = z
  .array(
    z
      .strictObject({
        field: z.enum(relatedFields).describe('Parameter of `GET /v1/sessions`.'),
        value: z.string(),
        sessions: z
          .int()
          .min(0)
          .max(maxRelated)
          .describe(
            `Sessions with the value, this one included. ${maxRelated} means that many or more.`,
          ),
        since: timestamp.describe('Start of the counted period.'),
      })
      .meta({ id: 'RelatedSessions' }),
  )
  .describe(
    'Numbers of sessions that share a value with this one: by visitor, user and address within 30 days, by other fields within a day. Only with `include=related`.',
  )

export const timelineSchema = z
  .array(
    z
      .strictObject({
        kind: z.enum(timelineKinds),
        at: timestamp,
        event_id: z.string().nullable().describe('Decision of a `decided` entry; otherwise null.'),
        value: z
          .string()
          .nullable()
          .describe(
            'URL of `document_opened`, reason of `decided`, `client_user_id` of `user_changed` (null = removed), label of `marked`; otherwise null.',
          ),
      })
      .meta({ id: 'TimelineEntry' }),
  )
  .describe(
    'Events of the session, oldest first. Documents are listed for a day after the session opened; `data_received` is the last data before a decision. Only with `include=timeline`.',
  )
