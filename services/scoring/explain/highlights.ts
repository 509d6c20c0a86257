import type { Highlight, HighlightEffect, HighlightImportance } from '../../../schemas/events.ts'
import type { Bound, Channel, Facts, Signal } from '../facts.ts'

const maxHighlights = 5
const maxEvidence = 5

interface Theme {
  key: string
  summary: string
  includes(signal: Signal): boolean
  atLeast?: number
}

const of =
  (...channels: Channel[]) =>
  (signal: Signal) =>
    signal.role === 'risk' && channels.includes(signal.channel)

const risks: Theme[] = [
  {
    key: 'browser_automation',
    summary: 'Browser automation markers were detected.',
    includes: of('webdriver', 'globals', 'user_agent', 'window', 'screen', 'devices', 'hints'),
  },
  {
    key: 'remote_debugging',
    summary: 'Remote debugging is on: developer tools are open, or a program steers the browser.',
    includes: of('console'),
  },
  {
    key: 'tampered_browser',
    summary: 'Built-in browser functions or values were replaced.',
    includes: of('functions', 'frames', 'extensions', 'plugins'),
  },
  {
    key: 'inconsistent_identity',
    summary: 'The browser contradicts what it says about itself.',
    includes: of('identity', 'canvas', 'locale', 'graphics', 'headers'),
  },
  {
    key: 'protocol_anomalies',
    summary: 'The client did not keep to the collect protocol.',
    includes: of('protocol', 'completeness', 'replay', 'history', 'velocity'),
  },
  {
    key: 'slow_page',
    summary:
      'The page was slow, so that parts of the snapshot are not there yet. That says nothing against a person.',
    includes: of('slowness'),
  },
  {
    key: 'unattested_app',
    summary: 'Nothing attests that this is the app, so that a script may have made it up.',
    includes: of('attestation'),
  },
  {
    key: 'compromised_app',
    summary: 'The app or its device shows signs of manipulation.',
    includes: of('app', 'instrumentation'),
  },
  {
    key: 'synthetic_behavior',
    summary: 'Input reached the page in ways that people rarely produce.',
    includes: of('pointer', 'pressure', 'clock', 'keyboard', 'touch', 'form', 'scroll', 'dispatch'),
  },
  {
    key: 'network_risk',
    summary: 'The network is one that automation often uses.',
    includes: of('network'),
  },
  {
    key: 'unattended_machine',
    summary: 'The machine looks like one that nobody sits at.',
    includes: of('machine'),
    atLeast: 2,
  },
]

const trust: Theme[] = [
  {
    key: 'natural_behavior',
    summary: 'Pointer, typing or touch look like those of a person.',
    includes: ({ role, category }) => role === 'trust' && category === 'behavioral',
  },
  {
    key: 'browser_profile_consistent',
    summary: 'Browser identity and device capabilities are consistent.',
    includes: ({ slug }) => slug === 'browser_profile_consistent',
  },
]

const context: Theme[] = [
  {
    key: 'privacy_tools',
    summary: 'The browser is hardened for privacy, which is not evidence of automation.',
    includes: ({ slug }) => slug === 'privacy_hardening_indicators',
  },
  {
    key: 'network_anonymity',
    summary: 'The session came through a network that hides its origin.',
    includes: ({ slug }) => slug === 'vpn_associated_ip',
  },
]

/** At most five, the most actionable first: risks by weight, what speaks for a person, then context. */
export function highlightsOf(fired: Signal[], facts: Facts, bound: Bound | null): Highlight[] {
  const increases = risks.flatMap((theme) => highlight(theme, 'increases_risk', fired))
  const sorted = increases.sort((one, other) => other.weight - one.weight)
  const [unseen, why] = [missing(facts), boundary(bound)]
  const all = [
    ...unseen,
    // Risks do not push out why the score is what it is.
    ...sorted.slice(0, maxHighlights - unseen.length - why.length),
    ...why,
    ...trust.flatMap((theme) => highlight(theme, 'reduces_risk', fired)),
    ...returning(facts),
    ...context.flatMap((theme) => highlight(theme, 'context', fired)),
  ]
  return all.slice(0, maxHighlights).map(({ weight: _, ...shown }) => shown)
}

type Weighted = Highlight & { weight: number }

function highlight(theme: Theme, effect: HighlightEffect, fired: Signal[]): Weighted[] {
  const mine = fired.filter(theme.includes).sort((one, other) => other.score - one.score)
  const [strongest] = mine
  if (!strongest || mine.length < (theme.atLeast ?? 1)) return []
  const evidence = mine.slice(0, maxEvidence).map(({ slug, name }) => ({ signal: slug, name }))
  const { key, summary } = theme
  const importance = importanceOf(strongest)
  return [{ key, effect, importance, summary, evidence, weight: strongest.score }]
}

function importanceOf({ role, strength }: Signal): HighlightImportance {
  if (role !== 'risk') return 'medium'
  if (strength === 'weak') return 'low'
  return strength === 'moderate' ? 'medium' : 'high'
}

function missing({ snapshot }: Facts): Weighted[] {
  if (snapshot) return []
  const summary = 'The client sent no readable snapshot, so that its environment is unknown.'
  return [{ key: 'no_snapshot', effect: 'context', importance: 'high', summary, evidence: null, weight: 0 }]
}

// Otherwise nobody sees why 69 is not 70, or why a score stays at 45.
function boundary(bound: Bound | null): Weighted[] {
  if (!bound) return []
  const common = { effect: 'context', importance: 'medium', weight: 0 } as const
  if (bound.kind === 'cap') {
    const summary = `What was found is of one kind and nothing of another kind confirms it, so that the score is ${bound.most} at most.`
    return [{ ...common, key: 'unconfirmed', summary, evidence: null }]
  }
  const { least, signal } = bound
  const summary = `The score is ${least} at least, until that is settled.`
  return [{ ...common, key: 'unearned', summary, evidence: [{ signal: signal.slug, name: signal.name }] }]
}

function returning({ visitorSessions }: Facts): Weighted[] {
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
