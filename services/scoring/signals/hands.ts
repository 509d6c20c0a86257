import type { Behavior } from '../../../schemas/observations.ts'
import type { Agent } from '../session/agent.ts'
import type { Facts } from '../session/facts.ts'
import { formatted, input, signals } from './signal.ts'

// Keyboards on the screen of a phone let each key go at once, and none overlaps another.
const hasKeyboard = ({ agent }: Facts) => agent.formFactor === 'desktop'

// People need some ten events to get anywhere.
function jumps({ mouse: m }: Behavior): boolean {
  const isFar = m.jumps >= 2 && m.jumps >= m.presses * 0.5
  return isFar || (m.presses >= 4 && m.moves > 0 && m.moves <= m.presses * 2)
}

function neverCoalesces({ mouse: m }: Behavior, { agent }: Facts): boolean {
  return (
    agent.engine === 'blink' &&
    agent.formFactor === 'desktop' &&
    m.single >= 60 &&
    m.coalesced === 0
  )
}

function isLoneClick({ mouse: m, touch }: Behavior): boolean {
  return m.presses === 1 && m.moves <= 2 && touch.events === 0
}

// 168,000 people held keys for 60 to 200 ms, and never equally long (Dhakal and others, 2018). Keys that are not held at
// all are another signal's.
function holdsOddly({ keyboard: k }: Behavior, facts: Facts): boolean {
  if (!hasKeyboard(facts) || k.keys < 12 || k.hold_mean === null || k.hold_mean < 12) return false
  return k.hold_mean < 40 || (k.hold_std !== null && k.hold_std < 5)
}

// The mean is of a whole session, pauses included, so only fast typists have it.
function neverOverlaps({ keyboard: k }: Behavior, facts: Facts): boolean {
  const isFast = k.keys >= 30 && k.interval_mean !== null && k.interval_mean < 130
  return hasKeyboard(facts) && isFast && k.rollovers === 0
}

function isUntouched({ mouse, keyboard, touch, clipboard }: Behavior): boolean {
  const byHand = mouse.presses + mouse.activations + mouse.moves + keyboard.keys + touch.touches
  return byHand + clipboard.pastes === 0
}

/** How hands differ from programs that have left the defaults of their tools. */
export const handSignals = signals({
  pointer_jumps: {
    name: 'Pointer that jumps to what it presses',
    looksAt:
      'half of all presses, and two at least, follow one move over more than 200 px; or four or more presses with at most two moves each',
    falsePositives: 'remote desktops, voice and eye control, absolute pointing devices',
    measured: ({ mouse: m }) => `${m.jumps} far jumps, ${m.moves} moves for ${m.presses} presses`,
    fires: input(jumps),
  },
  movement_never_coalesced: {
    name: 'Movement at the pace of a program',
    looksAt: 'in Chromium on a desktop, sixty or more moves, none of them coalesced',
    falsePositives: 'slow mice and touchpads, remote desktops, slow movements',
    measured: ({ mouse }) => `0 of ${mouse.single} moves`,
    fires: input(neverCoalesces),
  },
  lone_click: {
    name: 'One click without a hand',
    looksAt: 'a mouse button was pressed once, and at most two moves led to it',
    falsePositives: 'voice control, switch control, a pointer that lay on what is pressed',
    measured: ({ mouse }) => `1 press after ${mouse.moves} moves`,
    fires: input(isLoneClick),
  },
  unnatural_key_holds: {
    name: 'Keys that no finger holds',
    looksAt:
      'on a desktop, twelve or more keys are down for under 40 ms on average, or vary by less than 5 ms',
    falsePositives: 'keyboards on the screen, eye control, text expanders',
    measured: ({ keyboard: k }) =>
      `${k.keys} keys, ${formatted(k.hold_mean)} ± ${formatted(k.hold_std)} ms`,
    fires: input(holdsOddly),
  },
  keys_without_gaps: {
    name: 'Keys that follow without a gap',
    looksAt: 'on a desktop, half of ten or more keys are pressed within 8 ms of the last release',
    falsePositives: 'barcode scanners, text expanders, auto-type of password managers',
    measured: ({ keyboard: k }) => `${k.abutting} of ${k.keys} keys`,
    fires: input(
      ({ keyboard: k }, facts) => hasKeyboard(facts) && k.keys >= 10 && k.abutting >= k.keys * 0.5,
    ),
  },
  typing_without_overlap: {
    name: 'Fast typing without overlap',
    looksAt:
      'on a desktop, thirty or more keys at under 130 ms on average, and none overlaps another',
    falsePositives: 'people who type fast with few fingers',
    measured: ({ keyboard: k }) => `0 of ${k.keys} keys, every ${formatted(k.interval_mean)} ms`,
    fires: input(neverOverlaps),
  },
  typing_right_after_press: {
    name: 'Typing right after a press',
    looksAt: 'two or more characters followed the release of a mouse button within 60 ms',
    falsePositives: 'people with one hand on the mouse and the other on the keys',
    measured: ({ keyboard: k, mouse }) => `${k.hasty} times after ${mouse.presses} presses`,
    fires: input(({ keyboard }) => keyboard.hasty >= 2),
  },
  focus_without_cause: {
    name: 'Focus without cause',
    looksAt: 'two or more fields got the focus without input in the second before',
    falsePositives: 'password managers, pages that move the focus, voice control',
    measured: ({ form: f }) => `${f.uncaused_focuses} of ${f.focuses} fields`,
    fires: input(({ form }) => form.uncaused_focuses >= 2),
  },
  filled_without_focus: {
    name: 'Fields filled without focus',
    looksAt: 'two or more inputs of fields that had not the focus',
    falsePositives: 'password managers, page code',
    measured: ({ form: f }) => `${f.unfocused_inputs} inputs`,
    fires: input(({ form }) => form.unfocused_inputs >= 2),
  },
  submitted_without_input: {
    name: 'Form filled and sent without input',
    looksAt: 'a form was submitted after script filled three or more fields, without any input',
    falsePositives: 'tools that fill and send whole forms for a person',
    measured: ({ form: f }) => `${f.silent_changes} inputs, ${f.submits} submits`,
    fires: input(
      (behavior) =>
        behavior.form.submits > 0 &&
        behavior.form.silent_changes >= 3 &&
        behavior.form.autofills === 0 &&
        isUntouched(behavior),
    ),
  },
})

const isMobile = ({ formFactor }: Agent) => formFactor === 'mobile'
const isAndroid = (agent: Agent) =>
  isMobile(agent) && agent.system === 'android' && agent.engine === 'blink' && !agent.webView

/** Contacts that a program made: they last no time, have no size, or lie beside their place on the screen. */
export function markedTouches({ touch }: Behavior, { agent }: Pick<Facts, 'agent'>): number {
  return Math.max(touch.instant, touch.plain, isAndroid(agent) ? touch.displaced : 0)
}

function isEmulatedTouch(behavior: Behavior, facts: Facts): boolean {
  const isHeld = isMobile(facts.agent) || facts.agent.formFactor === 'tablet'
  const marked = markedTouches(behavior, facts)
  return isHeld && marked >= 2 && marked >= behavior.touch.touches * 0.5
}

/** What phones do not do, and a computer that poses as one does. */
export const phoneSignals = signals({
  emulated_touch: {
    name: 'Touches of no finger',
    looksAt:
      'on a phone or tablet, half of all touches, and two at least, end within 8 ms, have radii and force of 1, or are displaced',
    falsePositives: 'device emulation in developer tools, tests with `adb`, assistive apps',
    measured: ({ touch: t }) =>
      `${t.instant} at once, ${t.plain} without size and ${t.displaced} displaced of ${t.touches}`,
    fires: input(isEmulatedTouch),
  },
  mouse_on_phone: {
    name: 'Mouse on a phone',
    looksAt: 'on a phone, the button of a mouse was pressed',
    falsePositives: 'phones with a mouse or in a dock, phones that are steered from a computer',
    measured: ({ mouse }) => `${mouse.presses} presses`,
    fires: input(({ mouse }, { agent }) => isMobile(agent) && mouse.presses > 0),
  },
  keyboard_on_phone: {
    name: 'Keyboard of a computer on a phone',
    looksAt: 'on an Android phone, eight or more letters came from keys with numbers of their own',
    falsePositives: 'phones with a keyboard or in a dock, a few keyboard apps',
    measured: ({ keyboard }) => `${keyboard.letters} letters`,
    fires: input(({ keyboard }, { agent }) => isAndroid(agent) && keyboard.letters >= 8),
  },
})
