import { z } from 'zod'
import { bodyId, timestamp } from '../../infra/http/schemas.ts'
import { iso } from '../../infra/iso.ts'
import {
  clientUserIdInput,
  markLabel,
  markReason,
} from '../../projections/sessions/decision-schemas.ts'
import type { SessionSelector } from '../../projections/sessions/selected-sessions.ts'
import type { StoredMark } from '../../projections/sessions/tables.ts'
import { maxSessionsPerMark } from './decide.ts'

const targetNames = ['session_ids', 'visitor_id', 'client_user_id'] as const

const targetBody = z.strictObject({
  session_ids: z
    .array(bodyId('sid'))
    .min(1)
    .max(maxSessionsPerMark)
    .refine((ids) => new Set(ids).size === ids.length, 'must be distinct')
    .optional(),
  visitor_id: bodyId('vid').optional().describe('Visitor whose sessions so far are marked.'),
  client_user_id: clientUserIdInput.optional().describe('User whose sessions so far are marked.'),
})

export const markBody = targetBody
  .extend({ label: markLabel, reason: markReason.optional() })
  .superRefine((body, context) => {
    const present = targetNames.filter((name) => body[name] !== undefined)
    const message = `exactly one of ${targetNames.join(', ')}`
    for (const name of present.length === 0 ? targetNames.slice(0, 1) : present.slice(1))
      context.addIssue({ code: 'custom', path: [name], message })
  })
  .meta({ id: 'MarkRequest', oneOf: targetNames.map((name) => ({ required: [name] })) })

/** Returns the selector of the sessions to mark from a validated body. */
export function targetOf({
  session_ids,
  visitor_id,
  client_user_id,
}: z.output<typeof targetBody>): SessionSelector {
  if (visitor_id !== undefined) return { visitorId: visitor_id }
  if (client_user_id !== undefined) return { clientUserId: client_user_id }
  return { sessionIds: session_ids ?? [] }
}

export const markSchema = z
  .strictObject({
    object: z.literal('mark'),
    id: z.string(),
    label: markLabel,
    reason: markReason.nullable(),
    session_count: z.int().min(1).describe('Number of sessions with this mark.'),
    created_at: timestamp,
  })
  .meta({ id: 'Mark' })

export function markJson(
  { mark_id: id, label, reason, marked_at }: StoredMark,
  session_count: number,
): z.output<typeof markSchema> {
  return { object: 'mark', id, label, reason, session_count, created_at: iso(marked_at) }
}
