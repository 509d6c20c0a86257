import type { Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../facts.ts'
import { isUniformTyping } from './behavior.ts'
import { isSoftwareRendered } from './machine.ts'
import { browser, input, type Signal, snapshot } from './signal.ts'

const base = { family: 'trust', role: 'trust' } as const

function isConsistent(s: Snapshot, facts: Facts): boolean {
  const { worker, iframe, navigator, webgl } = s
  const agrees = (realm: Snapshot['worker']) =>
    realm.available === true && realm.user_agent === navigator.user_agent
  return agrees(worker) && agrees(iframe) && webgl.renderer !== null && !isSoftwareRendered(facts)
}

function provesFresh({ proofs }: Snapshot, { document }: Facts): boolean {
  return document !== null && document.challenge !== '' && proofs.challenge === document.challenge
}

/** Evidence of a person; it lowers the risk a little and never outweighs a definitive signal. */
export const trustSignals: Signal[] = [
  {
    ...base,
    slug: 'browser_profile_consistent',
    name: 'Consistent browser profile',
    category: 'fingerprint',
    strength: 'moderate',
    score: 6,
    looksAt: 'page, worker and iframe agree, and graphics are drawn by hardware',
    falsePositives: 'automation of a real browser on a real machine',
    fires: browser(isConsistent),
  },
  {
    ...base,
    slug: 'fresh_proofs',
    name: 'Fresh snapshot',
    category: 'integrity',
    strength: 'weak',
    score: 2,
    looksAt: "the snapshot answers its own document's challenge",
    falsePositives: 'every client that runs the SDK does',
    fires: snapshot(provesFresh),
  },
  {
    ...base,
    slug: 'natural_pointer_movement',
    name: 'Natural pointer movement',
    category: 'behavioral',
    strength: 'moderate',
    score: 8,
    looksAt: 'twenty or more trusted moves along uneven paths at uneven speed',
    falsePositives: 'tools that imitate pointer movement',
    fires: input(
      ({ mouse: m }) =>
        m.moves >= 20 &&
        m.untrusted === 0 &&
        m.screen_equals_client === 0 &&
        (m.straightness ?? 1) > 1.01 &&
        (m.speed_std ?? 0) > 0.05,
    ),
  },
  {
    ...base,
    slug: 'natural_typing',
    name: 'Natural typing rhythm',
    category: 'behavioral',
    strength: 'moderate',
    score: 6,
    looksAt: 'eight or more trusted keys with uneven intervals, overlaps or corrections',
    falsePositives: 'tools that imitate typing',
    fires: input(
      ({ keyboard: k, ...others }) =>
        k.keys >= 8 &&
        k.untrusted === 0 &&
        !isUniformTyping({ keyboard: k, ...others }) &&
        (k.interval_std ?? 0) > 25 &&
        k.rollovers + k.corrections > 0,
    ),
  },
  {
    ...base,
    slug: 'natural_touch',
    name: 'Natural touch',
    category: 'behavioral',
    strength: 'moderate',
    score: 6,
    looksAt: 'three or more trusted touches whose contact area varies',
    falsePositives: 'emulators that vary the contact area',
    fires: input(({ touch: t }) => t.touches >= 3 && t.untrusted === 0 && (t.radius_std ?? 0) > 0),
  },
  {
    ...base,
    slug: 'returning_visitor_fingerprint',
    name: 'Returning visitor',
    role: 'context',
    category: 'fingerprint',
    strength: 'moderate',
    score: 0,
    looksAt: 'an earlier session had the same visitor',
    falsePositives: 'not evidence either way',
    fires: ({ visitorSessions }) => visitorSessions > 1,
  },
]
