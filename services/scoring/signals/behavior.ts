import type { Behavior, Snapshot } from '../../../schemas/observations.ts'
import { standardModel } from '../model/model.ts'
import { type Facts, isAnswered } from '../session/facts.ts'
import {
  consistencySignals,
  hasDesktopGraphics,
  headerSignals,
  runsOnDesktop,
} from './consistency.ts'
import { computerParts, deviceSignals } from './devices.ts'
import { handSignals, markedTouches, phoneSignals } from './hands.ts'
import { isSoftwareRendered } from './headless.ts'
import {
  exactClicks,
  inDesktopChromium,
  isMadeBySoftware,
  isUniformTyping,
  keyboardSignals,
  pointerSignals,
  protocolCoordinates,
} from './input.ts'
import { formatted, inBrowser, input, signals, snapshot } from './signal.ts'

export function hasSyntheticClicks(behavior: Behavior): boolean {
  return exactClicks(behavior) || protocolCoordinates(behavior)
}

function mostlyUntrusted({ mouse, keyboard, touch }: Behavior): boolean {
  const events = mouse.events + keyboard.events + touch.events
  const untrusted = mouse.untrusted + keyboard.untrusted + touch.untrusted
  return untrusted >= 4 && untrusted >= events * 0.5
}

/**
 * How input reached the page. Typing aids, password managers, touch emulation and assistive technology look like the
 * moderate ones.
 */
export const behaviorSignals = [
  ...signals({
    untrusted_input: {
      name: 'Input made by script',
      looksAt: 'half or more of pointer, key and touch events are not trusted',
      falsePositives:
        'accessibility tools, password managers, pages that dispatch their own events',
      measured: ({ mouse, keyboard, touch }) =>
        `${mouse.untrusted + keyboard.untrusted + touch.untrusted} of ${mouse.events + keyboard.events + touch.events} events`,
      fires: input(mostlyUntrusted),
    },
  }),
  ...pointerSignals,
  ...keyboardSignals,
  ...phoneSignals,
  ...handSignals,
  ...signals({
    silent_form_fill: {
      name: 'Fields filled without input',
      looksAt: 'two or more fields changed with no key, paste or autofill',
      falsePositives: 'password managers, browser autofill that reports nothing, page code',
      measured: ({ form: f }) => `${f.silent_changes} inputs, no key`,
      fires: input(
        ({ form, keyboard }) =>
          form.silent_changes >= 2 && form.autofills === 0 && keyboard.keys === 0,
      ),
    },
    text_inserted_at_once: {
      name: 'Text inserted at once',
      looksAt:
        'in Chromium on a desktop, two or more texts came into fields at once, with no key or paste',
      falsePositives: 'dictation, panels for emoji',
      measured: ({ form: f }) => `${f.inserted} texts`,
      fires: input(({ form }, facts) => inDesktopChromium(facts) && form.inserted >= 2),
    },
    instant_submit: {
      name: 'Form submitted at once',
      looksAt: 'a form was submitted within half a second of its first change',
      falsePositives: 'autofill with submit, one-field forms',
      measured: ({ form: f }) => `after ${formatted(f.time_to_submit_ms)} ms`,
      fires: input(
        ({ form: f }) => f.submits > 0 && f.time_to_submit_ms !== null && f.time_to_submit_ms < 500,
      ),
    },
  }),
]

// Two languages, or a header that a proxy has changed, are no other browser.
const contradictions = [...consistencySignals, ...deviceSignals, ...headerSignals].filter(
  ({ slug }) => standardModel.signals[slug]?.strength !== 'weak',
)

function isConsistent(s: Snapshot, facts: Facts): boolean {
  const { worker, iframe, navigator, webgl, tamper } = s
  const agrees = (realm: Snapshot['worker']) =>
    realm.available === true && realm.user_agent === navigator.user_agent
  const isDrawn = webgl.renderer !== null && !isSoftwareRendered(facts)
  const isWhole =
    isDrawn && agrees(worker) && agrees(iframe) && tamper.webgl_parameter_mismatch !== true
  return isWhole && !contradictions.some((signal) => signal.fires(facts))
}

function isNaturalMovement(behavior: Behavior, facts: Facts): boolean {
  const { mouse: m } = behavior
  const isReal = m.untrusted === 0 && m.screen_equals_client + m.frameless === 0 && m.coalesced >= 3
  const isUneven = m.moves >= 10 && (m.straightness ?? 1) > 1.003 && (m.speed_std ?? 0) > 0.05
  return isReal && isUneven && !isMadeBySoftware(behavior, facts)
}

// Software presses one key after the other; fingers do not wait for each other.
function isNaturalTyping(behavior: Behavior, facts: Facts): boolean {
  const { keyboard: k } = behavior
  const isReal =
    k.untrusted === 0 && k.rollovers >= 2 && (k.hold_mean ?? 0) > 20 && (k.hold_std ?? 0) > 5
  const isUneven = k.keys >= 8 && !isUniformTyping(behavior) && (k.interval_std ?? 0) > 25
  return isReal && isUneven && !isMadeBySoftware(behavior, facts)
}

// A program varies the contact as it likes: a phone that is none, or touches with another mark, earn nothing by it.
function isNaturalTouch(behavior: Behavior, facts: Facts): boolean {
  const { touch: t } = behavior
  const { snapshot } = facts
  const isReal = t.untrusted === 0 && markedTouches(behavior, facts) === 0
  const isUneven = t.touches >= 3 && (t.radius_std ?? 0) > 0 && (t.interval_std ?? 0) > 5
  const isComputer =
    snapshot &&
    (hasDesktopGraphics(snapshot, facts) ||
      runsOnDesktop(snapshot, facts) ||
      computerParts(snapshot, facts).length > 0)
  const isFree = !isComputer && !phoneSignals.some((signal) => signal.fires(facts))
  return isReal && isUneven && isFree && snapshot?.automation.cdp_runtime !== true
}

type Natural = (behavior: Behavior, facts: Facts) => boolean

const observed = (facts: Facts, ways: Natural[]) => {
  const { behavior, behavioral } = facts
  return behavior !== null && behavioral && ways.some((isNatural) => isNatural(behavior, facts))
}

/** Whether a pointer or a keyboard was used as people use them. */
export const actsNaturally = (facts: Facts): boolean =>
  observed(facts, [isNaturalMovement, isNaturalTyping])

/** Whether pointer, keyboard or touch were used as people use them. */
export const hasNaturalInput = (facts: Facts): boolean =>
  observed(facts, [isNaturalMovement, isNaturalTyping, isNaturalTouch])

/** Evidence of a person; it lowers the risk a little and never outweighs a definitive signal. */
export const trustSignals = signals({
  browser_profile_consistent: {
    name: 'Consistent browser profile',
    looksAt:
      'page, worker and iframe agree, graphics are of hardware, and nothing contradicts the claimed browser',
    falsePositives: 'automation of a real browser on a real machine',
    fires: inBrowser(isConsistent),
  },
  fresh_proofs: {
    name: 'Fresh snapshot',
    looksAt: "the snapshot answers its own document's challenge",
    falsePositives: 'every client that runs the SDK does',
    fires: snapshot((_, facts) => isAnswered(facts)),
  },
  natural_pointer_movement: {
    name: 'Natural pointer movement',
    looksAt: 'ten or more uneven moves, some coalesced by the browser, with no trace of software',
    falsePositives: 'tools that imitate pointer movement below the browser',
    measured: ({ mouse: m }) =>
      `${m.moves} moves, ${m.coalesced} put together, line ${formatted(m.straightness, 3)}`,
    fires: input(isNaturalMovement),
  },
  natural_typing: {
    name: 'Natural typing rhythm',
    looksAt: 'eight or more uneven keys, two of which overlap others, with no trace of software',
    falsePositives: 'tools that imitate typing below the browser',
    measured: ({ keyboard: k }) =>
      `${k.keys} keys, ${k.rollovers} overlap, ${formatted(k.hold_mean)} ± ${formatted(k.hold_std)} ms down`,
    fires: input(isNaturalTyping),
  },
  natural_touch: {
    name: 'Natural touch',
    looksAt:
      'three or more trusted touches at uneven times with varying contact area, no trace of emulation, remote debugging off',
    falsePositives: 'emulators that vary the contact area and the times',
    measured: ({ touch: t }) => `${t.touches} touches, radius ± ${formatted(t.radius_std)} px`,
    fires: input(isNaturalTouch),
  },
  returning_visitor_fingerprint: {
    name: 'Returning visitor',
    looksAt: 'the client stored an id, and an earlier session had the same visitor',
    falsePositives: 'not evidence either way',
    looksBack: true,
    fires: ({ visitorSessions }) => visitorSessions > 1,
  },
})
