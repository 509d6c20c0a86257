import type { Highlight, HighlightEffect, HighlightImportance } from '../../../schemas/events.ts'
import type { Channel } from '../model/model.ts'
import type { Group } from '../model/score.ts'
import type { Facts } from '../session/facts.ts'
import type { Slug } from '../signals/catalogue.ts'
import type { Evaluation, FiredSignal } from '../signals/evaluate.ts'
import { showsMassProduction } from '../signals/repeats.ts'

const maxHighlights = 5
const maxEvidence = 5

interface Theme {
  key: string
  summary: string
  includes(signal: FiredSignal): boolean
  atLeast?: number
}

const of =
  (...channels: Channel[]) =>
  (signal: FiredSignal) =>
    signal.role === 'risk' && channels.includes(signal.channel)

const slugs =
  (...names: Slug[]) =>
  ({ slug }: FiredSignal) =>
    names.includes(slug)

const risks: Theme[] = [
  {
    key: 'agent_identity',
    summary: 'It says which agent it is, and a check of that may say whether it is.',
    includes: of('agent'),
  },
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
    includes: (signal) =>
      of('identity', 'canvas', 'locale', 'graphics', 'headers', 'handshake')(signal) &&
      signal.slug !== 'user_agent_replaced',
  },
  {
    key: 'replaced_user_agent',
    summary: 'A script replaced the user agent, as extensions that switch it do.',
    includes: slugs('user_agent_replaced'),
  },
  {
    key: 'protocol_anomalies',
    summary: 'The client did not keep to the collect protocol.',
    includes: (signal) =>
      of('protocol', 'completeness', 'velocity')(signal) &&
      !showsMassProduction(signal) &&
      signal.slug !== 'engine_not_learned',
  },
  {
    key: 'copied_identity',
    summary:
      'The client shows an id or a token that another device was given, so that it is not taken for that visitor.',
    includes: of('history'),
  },
  {
    key: 'mass_production',
    summary: 'Sessions repeat each other, or come at a rate, as those of people do not.',
    includes: showsMassProduction,
  },
  {
    key: 'engine_not_learned',
    summary:
      'This deployment has not learned yet how the engine answers its questions, so a script could have invented the session. Natural input or `tidegate learn` settles it.',
    includes: slugs('engine_not_learned'),
  },
  {
    key: 'slow_page',
    summary:
      'Parts of the snapshot, or answers to later questions, are not there yet. That says nothing against a person.',
    includes: of('slowness'),
  },
  {
    key: 'unattested_app',
    summary: 'Nothing attests that this is the app, so that a script may have made it up.',
    includes: ({ slug }) => slug === 'app_unattested',
  },
  {
    key: 'invalid_attestation',
    summary: 'The attestation of the app is not valid, so that another program may have sent it.',
    includes: (signal) => of('attestation')(signal) && signal.slug !== 'app_unattested',
  },
  {
    key: 'compromised_app',
    summary: 'The app or its device shows signs of manipulation.',
    includes: of('app', 'instrumentation'),
  },
  {
    key: 'synthetic_behavior',
    summary: 'Input reached the page in ways that people rarely produce.',
    includes: of(
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

// In the order of how much they explain of the other highlights.
const context: Theme[] = [
  {
    key: 'privacy_tools',
    summary: 'The browser is hardened for privacy, which is not evidence of automation.',
    includes: slugs('privacy_hardening_indicators'),
  },
  {
    key: 'network_anonymity',
    summary: 'The session came through a network that hides its origin.',
    includes: slugs('vpn_associated_ip'),
  },
  {
    key: 'rewritten_on_the_way',
    summary:
      'Requests name another browser than the page, its worker and its frame, as a proxy on the way makes them.',
    includes: slugs('user_agent_rewritten_on_the_way'),
  },
  {
    key: 'shared_account',
    summary: 'Many visitors have the same client user id, as where an account is shared.',
    includes: slugs('user_many_visitors'),
  },
  {
    key: 'shared_address',
    summary: 'Many sessions came from the address, as from a school, an office or a carrier.',
    includes: slugs('velocity_address'),
  },
  {
    key: 'equal_machine',
    summary:
      'Another session said the same of its machine, as returning visitors and equal devices do.',
    includes: slugs('replayed_snapshot'),
  },
  {
    key: 'wrapped_functions',
    summary: 'Code of the page or an extension wraps functions of the browser, as many do.',
    includes: slugs('wrapped_page_functions'),
  },
]

/**
 * At most five, the most actionable first: risks by weight, what speaks for a person, then context. Why the score is
 * what it is, and one of the context, are never pushed out.
 */
export function highlightsOf(evaluation: Evaluation): Highlight[] {
  const { fired, facts } = evaluation
  const increases = risks.flatMap((theme) => highlight(theme, 'increases_risk', { fired, facts }))
  const sorted = increases.sort((one, other) => other.weight - one.weight)
  const [unseen, why] = [missing(evaluation), boundary(evaluation)]
  const around = context.flatMap((theme) => highlight(theme, 'context', { fired, facts }))
  const left = maxHighlights - unseen.length - why.length - Math.min(1, around.length)
  const likeliest = sorted.slice(0, left)
  const speaks = trust.flatMap((theme) => highlight(theme, 'reduces_risk', { fired, facts }))
  const all = [
    ...unseen,
    ...likeliest,
    ...why,
    ...[...speaks, ...returning(facts)].slice(0, left - likeliest.length),
    ...around,
  ]
  return all.slice(0, maxHighlights).map(({ weight: _, ...highlight }) => highlight)
}

type Weighted = Highlight & { weight: number }

type Found = Pick<Evaluation, 'fired' | 'facts'>

function highlight(theme: Theme, effect: HighlightEffect, { fired, facts }: Found): Weighted[] {
  const mine = fired.filter(theme.includes).sort((one, other) => other.points - one.points)
  const [strongest] = mine
  if (!strongest || mine.length < (theme.atLeast ?? 1)) return []
  const evidence = mine.slice(0, maxEvidence).map((signal) => inWords(signal, facts))
  const { key, summary } = theme
  const importance = importanceOf(strongest)
  return [{ key, effect, importance, summary, evidence, weight: strongest.points }]
}

// Behind its name stands what was measured.
function inWords({ slug, name, measured, details }: FiredSignal, facts: Facts) {
  const added = (facts.behavior && measured?.(facts.behavior)) ?? details?.(facts) ?? null
  return { signal: slug, name: added === null ? name : `${name}: ${added}` }
}

function importanceOf({ role, strength }: FiredSignal): HighlightImportance {
  if (role !== 'risk') return 'medium'
  if (strength === 'weak') return 'low'
  return strength === 'moderate' ? 'medium' : 'high'
}

function missing({ facts, model }: Evaluation): Weighted[] {
  if (facts.snapshot) return []
  const summary = `The client sent no readable snapshot, so that its environment is unknown and the score is ${model.floors.no_snapshot} at least.`
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
  weak: 'Signals that say little count as',
  habits: 'Habits of input count as',
  trust: 'What speaks for a person takes away',
}

// Otherwise nobody sees why 69 is not 70, or why a score stays at 45.
function boundary({ fired, score: { bound } }: Evaluation): Weighted[] {
  if (!bound) return []
  const common = { effect: 'context', importance: 'medium', evidence: null, weight: 0 } as const
  if (bound.kind === 'cap') {
    const summary = `What was found is of one kind and nothing of another kind confirms it, so that the score is ${bound.most} at most.`
    return [{ ...common, key: 'unconfirmed', summary }]
  }
  if (bound.kind === 'proven') {
    const summary = `Whose program it is was proven, so that the score is ${bound.score} whatever else was found.`
    return [{ ...common, key: 'proven_identity', summary }]
  }
  if (bound.kind === 'groups')
    return [{ ...common, key: 'counted_together', summary: together(bound.limits) }]
  const summary = `The score is ${bound.least} at least, until that is settled.`
  const evidence = fired
    .filter(({ slug }) => slug === bound.signal)
    .map(({ slug: signal, name }) => ({ signal, name }))
  return [{ ...common, key: 'unearned', summary, evidence }]
}

function together(limits: Partial<Record<Group, number>>): string {
  const names: Group[] = ['weak', 'habits', 'trust']
  return names
    .flatMap((name) =>
      limits[name] === undefined
        ? []
        : `${groupNames[name]} at most ${limits[name]} points together.`,
    )
    .join(' ')
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
