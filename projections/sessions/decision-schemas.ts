import { z } from 'zod'

const idCharacters = '[0-9a-hjkmnp-tv-z]{26}'

export const sessionId = z.string().regex(new RegExp(`^sid_${idCharacters}$`))
export const decisionEventId = z.string().regex(new RegExp(`^evt_${idCharacters}$`))
export const visitorId = z.string().regex(new RegExp(`^vid_${idCharacters}$`))

export const percent = z.int().min(0).max(100)

export const verdict = z.enum(['bot', 'human', 'inconclusive']).meta({ id: 'Verdict' })
export const phase = z.enum(['snapshot', 'behavioral']).meta({ id: 'Phase' })

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
