import { distance } from 'fastest-levenshtein'
import type { Look } from './looks.ts'
import type { Visit } from './replay.ts'

interface Known {
  id: string
  look: Look
}

/**
 * Matches visits by the rules of FP-STALKER (Vastel et al., IEEE S&P 2018, rule-based variant), for the attributes that
 * a look has. Returns the id if exactly one fits, otherwise a new one.
 */
export function trackByRules(visits: Visit[]): string[] {
  const known = new Map<string, Known>()
  let ids = 0
  return visits.map(({ look }) => {
    const fitting = [...known.values()].filter((one) => isCandidate(one.look, look))
    const exact = fitting.filter((one) => differences(one.look, look).length === 0)
    const some = exact.length > 0 ? exact : fitting
    const id = some.length === 1 && some[0] ? some[0].id : `id_${ids++}`
    known.set(id, { id, look })
    return id
  })
}

function isCandidate(before: Look, now: Look): boolean {
  const [one, other] = [before.snapshot, now.snapshot]
  const [a, b] = [
    agentOf(one.navigator.user_agent ?? ''),
    agentOf(other.navigator.user_agent ?? ''),
  ]
  if (
    a.system !== b.system ||
    one.navigator.platform !== other.navigator.platform ||
    a.family !== b.family
  )
    return false
  if (b.version < a.version) return false
  if (
    one.canvas.hash !== other.canvas.hash ||
    one.fonts.enumeration_hash !== other.fonts.enumeration_hash
  )
    return false
  const changed = differences(before, now)
  const isAlike = changed.every(({ before: x, now: y, isSet }) => !isSet || ratio(x, y) > 0.75)
  const environment = changed.filter(({ isSet }) => !isSet).length
  return isAlike && changed.length - environment <= 2 && environment <= 1 && changed.length <= 2
}

const agentOf = (userAgent: string) => {
  const [, family = '', version = ''] = /(Edg|Firefox|Chrome|Version)\/(\d+)/.exec(userAgent) ?? []
  return { family, version: Number(version), system: /\(([^;)]*)/.exec(userAgent)?.[1] ?? '' }
}

function differences({ snapshot: one }: Look, { snapshot: other }: Look) {
  const pair = (isSet: boolean, of: (s: Look['snapshot']) => unknown) => ({
    isSet,
    before: String(of(one)),
    now: String(of(other)),
  })
  return [
    pair(true, (s) => s.navigator.user_agent),
    pair(true, (s) => s.webgl.renderer),
    pair(true, (s) => s.webgl.vendor),
    pair(true, (s) => s.navigator.plugins),
    pair(true, (s) => s.navigator.languages),
    pair(false, (s) => [s.environment.screen_width, s.environment.screen_height]),
    pair(false, (s) => s.environment.timezone),
  ].filter(({ before, now }) => before !== now)
}

const ratio = (one: string, other: string) =>
  1 - distance(one, other) / Math.max(one.length, other.length, 1)
