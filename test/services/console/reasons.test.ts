import { expect, test } from 'vitest'
import { reasonsOf } from '../../../services/console/pages/session/reasons.ts'
import type { SessionDetail } from '../../../services/readback/schemas/sessions.ts'

type Highlight = SessionDetail['highlights'][number]

const highlight = (effect: Highlight['effect'], summary: string, signals: string[]): Highlight => ({
  key: summary,
  effect,
  importance: 'high',
  summary,
  evidence: signals.map((signal) => ({ signal, name: signal })),
})
const fired = (signal: string, role: string, signal_score: number) => ({
  signal,
  role,
  signal_score,
  category: 'automation',
  strength: 'strong',
})

const session = {
  highlights: [
    highlight('increases_risk', 'Automated.', ['webdriver', 'globals']),
    highlight('reduces_risk', 'Looks human.', ['natural_typing']),
    highlight('context', 'Shared address.', ['velocity']),
  ],
  signals_fired: [
    fired('webdriver', 'risk', 100),
    fired('few_fonts', 'risk', 4),
    fired('hosting', 'risk', 12),
    fired('natural_typing', 'trust', 6),
    fired('fresh_proofs', 'trust', 2),
    fired('velocity', 'context', 0),
  ],
}

test('reasons for a bot are the highlights that raise the score, then other risk signals by points', () => {
  expect(reasonsOf(session, 'increases_risk')).toEqual([
    expect.objectContaining({ summary: 'Automated.', signals: ['webdriver', 'globals'] }),
    { summary: 'Other signals', signals: ['hosting', 'few_fonts'] },
  ])
})

test('reasons for a human are those that lower it, also if no highlight mentions them', () => {
  expect(reasonsOf(session, 'reduces_risk')).toEqual([
    expect.objectContaining({ summary: 'Looks human.', signals: ['natural_typing'] }),
    { summary: 'Other signals', signals: ['fresh_proofs'] },
  ])
  expect(reasonsOf({ ...session, highlights: [] }, 'reduces_risk')).toEqual([
    { summary: 'Other signals', signals: ['natural_typing', 'fresh_proofs'] },
  ])
})

test('there are no reasons without signals', () => {
  expect(reasonsOf({ highlights: [], signals_fired: [] }, 'increases_risk')).toEqual([])
})
