import type { Highlight, HighlightEffect, HighlightImportance } from '../../../schemas/events.ts'
import type { Channel } from '../model/model.ts'
import type { Group } from '../model/score.ts'
import type { Facts } from '../session/facts.ts'
import type { Slug } from '../signals/catalogue.ts'
import type { Evaluation, FiredSignal } from '../signals/evaluate.ts'
import { showsMassProduction } from '../signals/repeats.ts'

const maxHighlights = 5
const maxEvidence = 5

/** A highlight and the signals that it summarizes. */
interface Theme {
  key: string
  summary: string
  includes(signal: FiredSignal): boolean
  /** Number of signals that must fire. Default: 1. */
  minSignals?: number
}

const riskIn =
  (...channels: Channel[]) =>
  (signal: FiredSignal) =>
    signal.role === 'risk' && channels.includes(signal.channel)

const withSlug =
  (...names: Slug[]) =>
  ({ slug }: FiredSignal) =>
    names.includes(slug)

const risks: Theme[] = [
  {
    key: 'agent_identity',
    summary:
      'The session claims to be a bot or agent. `agent.status` says whether that was verified.',
    includes: riskIn('agent'),
  },
  {
    key: 'browser_automation',
    summary: 'Browser automation markers were detected.',
    includes: riskIn('webdriver', 'globals', 'user_agent', 'window', 'screen', 'devices', 'hints'),
  },
  {
    key: 'remote_debugging',
    summary: 'Remote debugging is on: developer tools are open, or a program controls the browser.',
    includes: riskIn('console'),
  },
  {
    key: 'tampered_browser',
    summary: 'Built-in browser functions or values were replaced.',
    includes: riskIn('functions', 'frames', 'extensions', 'plugins'),
  },
  {
    key: 'inconsistent_identity',
    summary: 'The browser contradicts its own claims.',
    includes: (signal) =>
      riskIn('identity', 'canvas', 'locale', 'graphics', 'headers', 'handshake')(signal) &&
      signal.slug !== 'user_agent_replaced',
  },
  {
    key: 'replaced_user_agent',
    summary: 'A script replaced the user agent, as user agent switchers do.',
    includes: withSlug('user_agent_replaced'),
  },
  {
    key: 'protocol_anomalies',
    summary: 'The client violated the collect protocol.',
    includes: (signal) =>
      riskIn('protocol', 'completeness', 'velocity')(signal) &&
      !showsMassProduction(signal) &&
      signal.slug !== 'engine_not_learned',
  },
  {
    key: 'copied_identity',
    summary:
      'The client presented an id or token issued to another device, so it is not matched to that visitor.',
    includes: riskIn('history'),
  },
  {
    key: 'mass_production',
    summary: 'Sessions are too similar, too frequent or too regular to come from people.',
    includes: showsMassProduction,
  },
  {
    key: 'engine_not_learned',
    summary:
      "This deployment has not learned the engine's answers to its questions yet, so a script could have invented the session. Natural input or `tidegate learn` resolves this.",
    includes: withSlug('engine_not_learned'),
  },
  {
    key: 'slow_page',
    summary:
      'Parts of the snapshot, or answers to later questions, have not arrived yet. This does not suggest automation.',
    includes: riskIn('slowness'),
  },
  {
    key: 'unattested_app',
    summary: 'The app is not attested, so a script may have invented the session.',
    includes: ({ slug }) => slug === 'app_unattested',
  },
  {
    key: 'invalid_attestation',
    summary: 'The attestation of the app is invalid, so another program may have sent it.',
    includes: (signal) => riskIn('attestation')(signal) && signal.slug !== 'app_unattested',
  },
  {
    key: 'compromised_app',
    summary: 'The app or its device shows signs of manipulation.',
    includes: riskIn('app', 'instrumentation'),
  },
  {
    key: 'synthetic_behavior',
    summary: 'Input reached the page in ways that people rarely cause.',
    includes: riskIn(
      'pointer',
      'pressure',
      'clock',
      'keyboard',
      'touch',
      'form',
      'scroll',
      'dispatch',
      'switching',
    ),
  },
  {
    key: 'network_risk',
    summary: 'Automation often uses this kind of network.',
    includes: riskIn('network'),
  },
  {
    key: 'unattended_machine',
    summary: 'The device looks like a server or virtual machine without a user.',
    includes: riskIn('machine'),
    minSignals: 2,
  },
]

const trust: Theme[] = [
  {
    key: 'natural_behavior',
    summary: 'Pointer movement, typing or touch look human.',
    includes: ({ role, category }) => role === 'trust' && category === 'behavioral',
  },
  {
    key: 'browser_profile_consistent',
    summary: 'Browser identity and device capabilities are consistent.',
    includes: ({ slug }) => slug === 'browser_profile_consistent',
  },
]

// Sorted by how well they explain other highlights.
const context: Theme[] = [
  {
    key: 'privacy_tools',
    summary: 'The browser is hardened for privacy, which is not evidence of automation.',
    includes: withSlug('privacy_hardening_indicators'),
  },
  {
    key: 'network_anonymity',
    summary: 'The network hides the origin of the session.',
    includes: withSlug('vpn_associated_ip'),
  },
  {
    key: 'rewritten_on_the_way',
    summary:
      'Request headers name a different browser than the page, its worker and its frame, as behind a rewriting proxy.',
    includes: withSlug('user_agent_rewritten_on_the_way'),
  },
  {
    key: 'shared_account',
    summary: 'Many visitors have the same client user id, as with shared accounts.',
    includes: withSlug('user_many_visitors'),
  },
  {
    key: 'shared_address',
    summary: 'Many sessions came from this address, as from a school, an office or a carrier.',
    includes: withSlug('velocity_address'),
  },
  {
    key: 'equal_machine',
    summary:
      'Another session reported identical device data, as from returning visitors and identical devices.',
    includes: withSlug('replayed_snapshot'),
  },
  {
    key: 'wrapped_functions',
    summary: 'The page or an extension wraps browser functions, which is common.',
    includes: withSlug('wrapped_page_functions'),
  },
]

/**
 * Returns at most five highlights, the most actionable first: risks by weight, trust, then context. The reason for a
 * limited score and one context highlight are always included.
 */
export function highlightsOf(evaluation: Evaluation): Highlight[] {
  const { fired, facts } = evaluation
  const increases = risks.flatMap((theme) => highlight(theme, 'increases_risk', { fired, facts }))
  const sorted = increases.sort((a, b) => b.weight - a.weight)
  const [noSnapshot, bound] = [snapshotHighlight(evaluation), boundHighlight(evaluation)]
  const circumstances = context.flatMap((theme) => highlight(theme, 'context', { fired, facts }))
  const slots = maxHighlights - noSnapshot.length - bound.length - Math.min(1, circumstances.length)
  const strongest = sorted.slice(0, slots)
  const reductions = trust.flatMap((theme) => highlight(theme, 'reduces_risk', { fired, facts }))
  const highlights = [
    ...noSnapshot,
    ...strongest,
    ...bound,
    ...[...reductions, ...visitorHighlight(facts)].slice(0, slots - strongest.length),
    ...circumstances,
  ]
  return highlights.slice(0, maxHighlights).map(({ weight: _, ...rest }) => rest)
}

type Weighted = Highlight & { weight: number }

type FiredFacts = Pick<Evaluation, 'fired' | 'facts'>

function highlight(
  theme: Theme,
  effect: HighlightEffect,
  { fired, facts }: FiredFacts,
): Weighted[] {
  const signals = fired.filter(theme.includes).sort((a, b) => b.points - a.points)
  const [strongest] = signals
  if (!strongest || signals.length < (theme.minSignals ?? 1)) return []
  const evidence = signals.slice(0, maxEvidence).map((signal) => evidenceEntry(signal, facts))
  const { key, summary } = theme
  const importance = importanceOf(strongest)
  return [{ key, effect, importance, summary, evidence, weight: strongest.points }]
}

// Appends measurements or details to the signal's name.
function evidenceEntry({ slug, name, numbers, details }: FiredSignal, facts: Facts) {
  const suffix = (facts.behavior && numbers?.(facts.behavior)) ?? details?.(facts) ?? null
  return { signal: slug, name: suffix === null ? name : `${name}: ${suffix}` }
}

function importanceOf({ role, strength }: FiredSignal): HighlightImportance {
  if (role !== 'risk') return 'medium'
  if (strength === 'weak') return 'low'
  return strength === 'moderate' ? 'medium' : 'high'
}

function snapshotHighlight({ facts, model }: Evaluation): Weighted[] {
  if (facts.snapshot) return []
  const summary = `The client sent no readable snapshot, so its environment is unknown and the score is at least ${model.floors.no_snapshot}.`
  return [
    {
      key: 'no_snapshot',
      effect: 'context',
      importance: 'high',
      summary,
      evidence: null,
      weight: 0,
    },
  ]
}

const groupNames: Record<Group, string> = {
  weak: 'Weak signals count',
  habits: 'Input habits count',
  trust: 'Trust signals subtract',
}

// Explains why a score stays at a limit, such as 69 or 45.
function boundHighlight({ fired, score: { bound } }: Evaluation): Weighted[] {
  if (!bound) return []
  const common = { effect: 'context', importance: 'medium', evidence: null, weight: 0 } as const
  if (bound.kind === 'cap') {
    const summary = `All risk signals are of one kind and no other kind confirms them, so the score is at most ${bound.max}.`
    return [{ ...common, key: 'unconfirmed', summary }]
  }
  if (bound.kind === 'proven') {
    const summary = `The program was identified with certainty, so the score is ${bound.score} regardless of other signals.`
    return [{ ...common, key: 'proven_identity', summary }]
  }
  if (bound.kind === 'groups')
    return [{ ...common, key: 'counted_together', summary: groupSummary(bound.limits) }]
  const summary = `The score is at least ${bound.min} until this is resolved.`
  const evidence = fired
    .filter(({ slug }) => slug === bound.signal)
    .map(({ slug: signal, name }) => ({ signal, name }))
  return [{ ...common, key: 'unearned', summary, evidence }]
}

function groupSummary(limits: Partial<Record<Group, number>>): string {
  const names: Group[] = ['weak', 'habits', 'trust']
  return names
    .flatMap((name) =>
      limits[name] === undefined
        ? []
        : `${groupNames[name]} at most ${limits[name]} points together.`,
    )
    .join(' ')
}

function visitorHighlight({ visitorSessions }: Facts): Weighted[] {
  if (visitorSessions < 2) return []
  const name = `Seen ${visitorSessions} times`
  const evidence = [{ signal: 'returning_visitor_fingerprint', name }]
  const summary = 'This visitor fingerprint has been seen before.'
  return [
    {
      key: 'known_visitor_fingerprint',
      effect: 'context',
      importance: 'medium',
      summary,
      evidence,
      weight: 0,
    },
  ]
}
