import { z } from 'zod'
import type { AgentStatus, MarkLabel } from '../../schemas/events.ts'

const idCharacters = '[0-9a-hjkmnp-tv-z]{26}'

export const sessionId = z.string().regex(new RegExp(`^sid_${idCharacters}$`))
export const decisionEventId = z.string().regex(new RegExp(`^evt_${idCharacters}$`))
export const visitorId = z.string().regex(new RegExp(`^vid_${idCharacters}$`))

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

export const markLabel = z.enum(['human', 'bot', 'fraud', 'legitimate'] satisfies MarkLabel[])
export const markReason = z
  .string()
  .regex(/^[a-z0-9_]{1,64}$/)
  .describe('A word of your own.')

export const manipulation = z
  .strictObject({ score: percent, verdict: z.enum(['none', 'low', 'medium', 'high']) })
  .meta({ id: 'ManipulationSummary' })

export const attribution = z
  .strictObject({
    labels: z.array(
      z.strictObject({
        kind: z.enum([
          'actor',
          'provider',
          'tool',
          'product',
          'organization',
          'purpose',
          'environment',
          'trust',
          'evasion',
        ]),
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
