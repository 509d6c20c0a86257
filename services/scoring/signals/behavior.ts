import type { Behavior, Snapshot } from '../../../schemas/observations.ts'
import { answersChallenge, type Facts, inBrowser, input, type Signal, snapshot } from '../facts.ts'
import { isSoftwareRendered } from './headless.ts'

const behaviorBase = { family: 'behavior', role: 'risk', category: 'behavioral' } as const

function exactClicks({ mouse, touch }: Behavior): boolean {
  return touch.events === 0 && mouse.clicks >= 2 && mouse.clicks_exact_center >= mouse.clicks
}

/** Screen position equal to client position although the window is not at the screen's corner. */
function protocolCoordinates({ mouse }: Behavior): boolean {
  return mouse.screen_equals_client >= 5 && mouse.screen_equals_client >= mouse.moves * 0.9
}

export function hasSyntheticClicks(behavior: Behavior): boolean {
  return exactClicks(behavior) || protocolCoordinates(behavior)
}

function mostlyUntrusted({ mouse, keyboard, touch }: Behavior): boolean {
  const events = mouse.events + keyboard.events + touch.events
  const untrusted = mouse.untrusted + keyboard.untrusted + touch.untrusted
  return untrusted >= 4 && untrusted >= events * 0.5
}

function isUniformTyping({ keyboard: k }: Behavior): boolean {
  return k.keys >= 10 && k.corrections === 0 && k.interval_std !== null && k.interval_std < 6
}

function isSuperhumanTyping({ keyboard: k }: Behavior): boolean {
  return k.keys >= 15 && k.interval_mean !== null && k.interval_mean < 25
}

/**
 * How input reached the page. Typing aids, password managers, touch emulation and assistive technology all look like
 * some of this, so that behaviour alone never makes a bot.
 */
export const behaviorSignals: Signal[] = [
  {
    ...behaviorBase,
    slug: 'untrusted_input',
    name: 'Input made by script',
    strength: 'strong',
    score: 40,
    looksAt: 'half or more of pointer, key and touch events are not trusted',
    falsePositives: 'accessibility tools, password managers, pages that dispatch their own events',
    fires: input(mostlyUntrusted),
  },
  {
    ...behaviorBase,
    slug: 'exact_center_clicks',
    name: 'Clicks on exact centres',
    strength: 'moderate',
    score: 28,
    looksAt: 'two or more mouse clicks, each on the exact centre of its element',
    falsePositives: 'tiny targets, assistive pointers that snap to elements',
    fires: input(exactClicks),
  },
  {
    ...behaviorBase,
    slug: 'clicks_without_movement',
    name: 'Clicks without movement',
    strength: 'moderate',
    score: 20,
    looksAt: 'two or more clicks that no pointer movement, touch or key led to',
    falsePositives: 'switch control, remote control tools',
    fires: input(({ mouse, touch }) => touch.events === 0 && mouse.clicks_without_move >= 2),
  },
  {
    ...behaviorBase,
    slug: 'protocol_pointer_coordinates',
    name: 'Pointer coordinates of a debugging protocol',
    strength: 'moderate',
    score: 28,
    looksAt:
      'nearly all pointer moves have equal screen and client positions although the window has an offset',
    falsePositives: 'unusual full-screen setups',
    fires: input(protocolCoordinates),
  },
  {
    ...behaviorBase,
    slug: 'uniform_typing',
    name: 'Uniform typing rhythm',
    strength: 'moderate',
    score: 25,
    looksAt: 'ten or more keys with intervals that vary by less than 6 ms and no correction',
    falsePositives: 'held keys, input method editors, text expanders',
    fires: input(isUniformTyping),
  },
  {
    ...behaviorBase,
    slug: 'superhuman_typing',
    name: 'Typing faster than people type',
    strength: 'moderate',
    score: 25,
    looksAt: 'fifteen or more keys at under 25 ms on average',
    falsePositives: 'barcode scanners, text expanders',
    fires: input(isSuperhumanTyping),
  },
  {
    ...behaviorBase,
    slug: 'straight_pointer_paths',
    name: 'Straight pointer paths',
    strength: 'weak',
    score: 10,
    looksAt: 'twenty or more moves along straight lines at an even speed',
    falsePositives: 'trackpoints, keyboards that move the pointer, short sessions',
    fires: input(
      ({ mouse: m }) =>
        m.moves >= 20 &&
        m.straightness !== null &&
        m.straightness < 1.003 &&
        m.speed_std !== null &&
        m.speed_std < 0.05,
    ),
  },
  {
    ...behaviorBase,
    slug: 'silent_form_fill',
    name: 'Fields filled without input',
    strength: 'weak',
    score: 12,
    looksAt: 'two or more fields changed with no key, paste or autofill',
    falsePositives: 'password managers, browser autofill that reports nothing, page code',
    fires: input(
      ({ form, keyboard }) => form.silent_changes >= 2 && form.autofills === 0 && keyboard.keys === 0,
    ),
  },
  {
    ...behaviorBase,
    slug: 'instant_submit',
    name: 'Form submitted at once',
    strength: 'weak',
    score: 10,
    looksAt: 'a form was submitted within half a second of its first change',
    falsePositives: 'autofill with submit, one-field forms',
    fires: input(({ form: f }) => f.submits > 0 && f.time_to_submit_ms !== null && f.time_to_submit_ms < 500),
  },
]

const trustBase = { family: 'trust', role: 'trust' } as const

function isConsistent(s: Snapshot, facts: Facts): boolean {
  const { worker, iframe, navigator, webgl } = s
  const agrees = (realm: Snapshot['worker']) =>
    realm.available === true && realm.user_agent === navigator.user_agent
  return agrees(worker) && agrees(iframe) && webgl.renderer !== null && !isSoftwareRendered(facts)
}

function provesFresh(snapshot: Snapshot, { document }: Facts): boolean {
  return document !== null && answersChallenge(snapshot, document)
}

/** Evidence of a person; it lowers the risk a little and never outweighs a definitive signal. */
export const trustSignals: Signal[] = [
  {
    ...trustBase,
    slug: 'browser_profile_consistent',
    name: 'Consistent browser profile',
    category: 'fingerprint',
    strength: 'moderate',
    score: 6,
    looksAt: 'page, worker and iframe agree, and graphics are drawn by hardware',
    falsePositives: 'automation of a real browser on a real machine',
    fires: inBrowser(isConsistent),
  },
  {
    ...trustBase,
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
    ...trustBase,
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
    ...trustBase,
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
    ...trustBase,
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
    ...trustBase,
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
