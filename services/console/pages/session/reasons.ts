import type { SessionDetail } from '../../../readback/schemas/sessions.ts'

type Session = Pick<SessionDetail, 'highlights' | 'signals_fired'>

export interface Reason {
  summary: string
  /** Signals behind it, strongest first. */
  signals: string[]
}

const roles = { increases_risk: 'risk', reduces_risk: 'trust' } as const

/** Returns what raised or what lowered the score, strongest first, then signals that no highlight explains. */
export function reasonsOf(
  { highlights, signals_fired: fired }: Session,
  effect: keyof typeof roles,
): Reason[] {
  const reasons = highlights.map(({ effect, summary, evidence = [] }) => ({
    effect,
    summary,
    signals: evidence.map(({ signal }) => signal),
  }))
  const explained = new Set(reasons.flatMap(({ signals }) => signals))
  const others = fired
    .filter(({ role, signal }) => role === roles[effect] && !explained.has(signal))
    .toSorted((a, b) => b.signal_score - a.signal_score)
    .map(({ signal }) => signal)
  return [
    ...reasons.filter((reason) => reason.effect === effect),
    ...(others.length > 0 ? [{ summary: 'Other signals', signals: others }] : []),
  ]
}
