import type { Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../facts.ts'
import { type Signal, snapshot } from './signal.ts'

const base = { family: 'protocol', role: 'risk', category: 'integrity' } as const

function answersWrong({ proofs }: Snapshot, { document }: Facts): boolean {
  if (!document) return false
  return wrong(proofs.challenge, document.challenge) || wrong(proofs.timing_nonce, document.timing_nonce)
}

function wrong(answer: string | null, expected: string): boolean {
  return answer !== null && expected !== '' && answer !== expected
}

/** Groups that every honest client fills at least in part. */
export function missingGroups(s: Snapshot): number {
  return [
    s.navigator.user_agent === null,
    s.environment.screen_width === null && s.environment.inner_width === null,
    s.navigator.language === null && s.navigator.languages.length === 0,
    s.environment.timezone === null,
    s.automation.webdriver === null && s.engine.name === null && s.engine.eval_length === null,
  ].filter(Boolean).length
}

/** How the client kept to the collect protocol. */
export const protocolSignals: Signal[] = [
  {
    ...base,
    slug: 'unreadable_observations',
    name: 'Unreadable observations',
    strength: 'strong',
    score: 45,
    looksAt: 'an accepted body that is not the agreed JSON within the limits of docs/collect-protocol.md',
    falsePositives: 'a defective client build',
    fires: ({ unreadable }) => unreadable > 0,
  },
  {
    ...base,
    slug: 'conflicting_replay',
    name: 'Conflicting replay',
    strength: 'strong',
    score: 48,
    looksAt: 'a second, different body under a sequence number that was already used',
    falsePositives: 'a page restored from a duplicate of a browser profile',
    fires: ({ conflicts }) => conflicts > 0,
  },
  {
    ...base,
    slug: 'stale_snapshot',
    name: 'Snapshot answers another document',
    strength: 'strong',
    score: 55,
    looksAt: 'the proofs of a snapshot are not those that its document was given',
    falsePositives: 'none known; missing proofs do not count',
    fires: snapshot(answersWrong),
  },
  {
    ...base,
    slug: 'telemetry_incomplete',
    name: 'Incomplete telemetry',
    strength: 'moderate',
    score: 42,
    looksAt:
      'a browser snapshot with three or more of user agent, screen, language, time zone, engine missing',
    falsePositives: 'very old browsers, blocked scripts; it never makes a bot',
    fires: snapshot((s) => s.native === null && missingGroups(s) >= 3),
  },
  {
    ...base,
    slug: 'session_identity_changed',
    name: 'Browser changed within the session',
    strength: 'moderate',
    score: 28,
    looksAt: 'user agent, platform or graphics card differ between two snapshots of a session',
    falsePositives: 'switching to the desktop site, a second graphics card',
    fires: ({ identityChanges }) => identityChanges > 0,
  },
]
