import { z } from 'zod'
import { timestamp } from '../../infra/http/schemas.ts'
import { characterCount, isPlainText } from '../../infra/text.ts'
import type { AgentStatus, AttributionKind, MarkLabel } from '../../schemas/events.ts'

const idCharacters = '[0-9a-hjkmnp-tv-z]{26}'

export const sessionId = z.string().regex(new RegExp(`^sid_${idCharacters}$`))
export const decisionEventId = z.string().regex(new RegExp(`^evt_${idCharacters}$`))
export const visitorId = z.string().regex(new RegExp(`^vid_${idCharacters}$`))

const maxUserIdCharacters = 256

/** The customer's id of an end user. Rejects `.` and `..`, because HTTP clients remove them from paths. */
export const clientUserIdInput = z
  .string()
  .refine((id) => id !== '' && characterCount(id) <= maxUserIdCharacters, {
    error: `1 to ${maxUserIdCharacters} characters`,
  })
  .refine(isPlainText, { error: 'no control characters' })
  .refine((id) => id !== '.' && id !== '..', {
    error: 'any id except "." and "..", which HTTP clients remove from paths',
  })
  .meta({ minLength: 1, maxLength: maxUserIdCharacters })

export const percent = z.int().min(0).max(100)

export const verdict = z.enum(['bot', 'human', 'inconclusive']).meta({ id: 'Verdict' })
export const phase = z.enum(['snapshot', 'behavioral']).meta({ id: 'Phase' })

export const agentStatus = z.enum([
  'none',
  'declared',
  'signed',
  'verified',
  'spoofed',
] satisfies AgentStatus[])

export const agent = z
  .strictObject({
    status: agentStatus,
    provider: z
      .string()
      .nullable()
      .describe('Operator, such as `openai`, or the domain that the agent claims.'),
    product: z.string().nullable().describe('Name of the agent, such as `Googlebot`.'),
    purpose: z
      .string()
      .nullable()
      .describe(
        'One of search, ai_assistant, ai_training, monitor, preview, feed, advertising, archive, research, security, seo, webhook, other.',
      ),
    method: z
      .string()
      .nullable()
      .describe('Check that decided the status: signature, reverse_dns or published_ranges.'),
    evidence: z
      .strictObject({
        catalogue_id: z.string().nullable(),
        domain: z
          .string()
          .nullable()
          .describe('Host of the `Signature-Agent` header, with the port unless it is 443.'),
        key_id: z.string().nullable().describe('Thumbprint of the signing key.'),
        host_name: z
          .string()
          .nullable()
          .describe('Host name of the address, if it resolves back to the address.'),
        list: z
          .string()
          .nullable()
          .describe('Published ranges in which the address was looked up.'),
        reason: z.string().nullable().describe('Reason why the signature was not accepted.'),
        fetched_at: timestamp
          .nullable()
          .describe('Time when the key directory or host name was fetched.'),
      })
      .nullable(),
  })
  .meta({
    id: 'SessionAgent',
    description: 'Bot or agent that the session claims to be, and whether the claim was verified.',
  })

export const markLabel = z.enum(['human', 'bot', 'fraud', 'legitimate'] satisfies MarkLabel[])
export const markReason = z
  .string()
  .regex(/^[a-z0-9_]{1,64}$/)
  .describe('Your reason code: lower-case letters, digits and `_`.')

export const manipulation = z
  .strictObject({ score: percent, verdict: z.enum(['none', 'low', 'medium', 'high']) })
  .meta({ id: 'ManipulationSummary' })

export const attributionKind = z.enum([
  'actor',
  'provider',
  'tool',
  'product',
  'organization',
  'purpose',
  'environment',
  'trust',
  'evasion',
] satisfies AttributionKind[])

export const attribution = z
  .strictObject({
    labels: z.array(
      z.strictObject({
        kind: attributionKind,
        value: z.string(),
        label: z.string(),
        confidence: percent,
      }),
    ),
    behaviors: z.array(
      z.strictObject({
        channel: z.enum(['typing', 'form', 'mouse', 'touch', 'scroll', 'clipboard']),
        value: z.string(),
        label: z.string(),
        confidence: percent,
      }),
    ),
  })
  .meta({ id: 'SessionAttribution' })
