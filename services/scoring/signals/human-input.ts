import type { Behavior } from '../../../schemas/observations.ts'
import type { Agent } from '../session/agent.ts'
import type { Facts } from '../session/facts.ts'
import { defineSignals, formatMeasure, ifInput } from './signal.ts'

// Excludes on-screen keyboards, which release each key at once, without overlaps.
const hasKeyboard = ({ agent }: Facts) => agent.formFactor === 'desktop'

// A human pointer movement takes about ten events.
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

// 168,000 people held keys for 60 to 200 ms, with varying times (Dhakal et al., 2018). Instant releases have a signal
// of their own, `instant_key_presses`.
function hasOddHoldTimes({ keyboard: k }: Behavior, facts: Facts): boolean {
  if (!hasKeyboard(facts) || k.keys < 12 || k.hold_mean === null || k.hold_mean < 12) return false
  return k.hold_mean < 40 || (k.hold_std !== null && k.hold_std < 5)
}

// The mean includes pauses, so only fast typists reach it.
function neverOverlaps({ keyboard: k }: Behavior, facts: Facts): boolean {
  const isFast = k.keys >= 30 && k.interval_mean !== null && k.interval_mean < 130
  return hasKeyboard(facts) && isFast && k.rollovers === 0
}

function hasNoInput({ mouse, keyboard, touch, clipboard }: Behavior): boolean {
  const byHand = mouse.presses + mouse.activations + mouse.moves + keyboard.keys + touch.touches
  return byHand + clipboard.pastes === 0
}

/** Signals that tell human input from tools, even if their settings imitate people. */
export const humanInputSignals = defineSignals({
  pointer_jumps: {
    name: 'Pointer jumps to targets',
    looksAt:
      'at least half of the presses, and two or more, follow a single move of more than 200 px; or four or more presses with at most two moves each on average',
    falsePositives: 'remote desktops, voice and eye control, absolute pointing devices',
    numbers: ({ mouse: m }) => `${m.jumps} far jumps, ${m.moves} moves for ${m.presses} presses`,
    fires: ifInput(jumps),
  },
  movement_never_coalesced: {
    name: 'Uncoalesced pointer movement',
    looksAt: 'in Chromium on a desktop, sixty or more moves, none coalesced by the browser',
    falsePositives: 'slow mice and touchpads, remote desktops, slow movement',
    numbers: ({ mouse }) => `0 of ${mouse.single} moves`,
    fires: ifInput(neverCoalesces),
  },
  lone_click: {
    name: 'Single click without movement',
    looksAt: 'the only mouse press followed at most two moves',
    falsePositives: 'voice control, switch control, a pointer that was already on the target',
    numbers: ({ mouse }) => `1 press after ${mouse.moves} ${mouse.moves === 1 ? 'move' : 'moves'}`,
    fires: ifInput(isLoneClick),
  },
  unnatural_key_holds: {
    name: 'Unnatural key hold times',
    looksAt:
      'on a desktop, twelve or more keys, held for less than 40 ms on average or with times that vary by less than 5 ms',
    falsePositives: 'on-screen keyboards, eye control, text expanders',
    numbers: ({ keyboard: k }) =>
      `${k.keys} keys, ${formatMeasure(k.hold_mean)} ± ${formatMeasure(k.hold_std)} ms`,
    fires: ifInput(hasOddHoldTimes),
  },
  keys_without_gaps: {
    name: 'Keys pressed without gaps',
    looksAt:
      'on a desktop, ten or more keys, at least half of them pressed within 8 ms of the last release',
    falsePositives: 'barcode scanners, text expanders, auto-type of password managers',
    numbers: ({ keyboard: k }) => `${k.abutting} of ${k.keys} keys`,
    fires: ifInput(
      ({ keyboard: k }, facts) => hasKeyboard(facts) && k.keys >= 10 && k.abutting >= k.keys * 0.5,
    ),
  },
  typing_without_overlap: {
    name: 'Fast typing without overlap',
    looksAt:
      'on a desktop, thirty or more keys, less than 130 ms apart on average, none overlapping',
    falsePositives: 'people who type fast with a few fingers',
    numbers: ({ keyboard: k }) => `0 of ${k.keys} keys, every ${formatMeasure(k.interval_mean)} ms`,
    fires: ifInput(neverOverlaps),
  },
  typing_right_after_press: {
    name: 'Typing immediately after a click',
    looksAt: 'two or more characters were typed within 60 ms of a mouse button release',
    falsePositives: 'people with one hand on the mouse and one on the keyboard',
    numbers: ({ keyboard: k, mouse }) => `${k.hasty} times after ${mouse.presses} presses`,
    fires: ifInput(({ keyboard }) => keyboard.hasty >= 2),
  },
  focus_without_cause: {
    name: 'Focus without cause',
    looksAt: 'two or more fields got the focus with no input in the preceding second',
    falsePositives: 'password managers, pages that move the focus, voice control',
    numbers: ({ form: f }) => `${f.uncaused_focuses} of ${f.focuses} fields`,
    fires: ifInput(({ form }) => form.uncaused_focuses >= 2),
  },
  filled_without_focus: {
    name: 'Fields filled without focus',
    looksAt: 'two or more inputs to fields without the focus',
    falsePositives: 'password managers, page code',
    numbers: ({ form: f }) => `${f.unfocused_inputs} inputs`,
    fires: ifInput(({ form }) => form.unfocused_inputs >= 2),
  },
  submitted_without_input: {
    name: 'Form filled and submitted without input',
    looksAt:
      'a form was submitted after a script filled three or more fields, without any user input',
    falsePositives: 'tools that fill and submit forms for a person',
    numbers: ({ form: f }) => `${f.silent_changes} inputs, ${f.submits} submits`,
    fires: ifInput(
      (behavior) =>
        behavior.form.submits > 0 &&
        behavior.form.silent_changes >= 3 &&
        behavior.form.autofills === 0 &&
        hasNoInput(behavior),
    ),
  },
})

const isMobile = ({ formFactor }: Agent) => formFactor === 'mobile'
const isAndroidPhone = (agent: Agent) =>
  isMobile(agent) && agent.system === 'android' && agent.engine === 'blink' && !agent.webView

/** Returns the number of touches without duration or size, or displaced on the screen, as software makes them. */
export function countEmulatedTouches({ touch }: Behavior, { agent }: Pick<Facts, 'agent'>): number {
  return Math.max(touch.instant, touch.plain, isAndroidPhone(agent) ? touch.displaced : 0)
}

function isEmulatedTouch(behavior: Behavior, facts: Facts): boolean {
  const isHandheld = isMobile(facts.agent) || facts.agent.formFactor === 'tablet'
  const count = countEmulatedTouches(behavior, facts)
  return isHandheld && count >= 2 && count >= behavior.touch.touches * 0.5
}

/** Signals of desktop machines that pose as phones. */
export const phoneSignals = defineSignals({
  emulated_touch: {
    name: 'Emulated touches',
    looksAt:
      'on a phone or tablet, at least half of the touches, and two or more, end within 8 ms, have radii and force of 1, or are displaced',
    falsePositives: 'device emulation in developer tools, tests with `adb`, assistive apps',
    numbers: ({ touch: t }) =>
      `${t.instant} at once, ${t.plain} without size and ${t.displaced} displaced of ${t.touches}`,
    fires: ifInput(isEmulatedTouch),
  },
  mouse_on_phone: {
    name: 'Mouse on a phone',
    looksAt: 'on a phone, a mouse button was pressed',
    falsePositives: 'phones with a mouse or in a dock, phones controlled from a computer',
    numbers: ({ mouse }) => `${mouse.presses} presses`,
    fires: ifInput(({ mouse }, { agent }) => isMobile(agent) && mouse.presses > 0),
  },
  keyboard_on_phone: {
    name: 'Computer keyboard on a phone',
    looksAt:
      'on an Android phone, eight or more letters have a real `keyCode`, which on-screen keyboards do not send',
    falsePositives: 'phones with a physical keyboard or in a dock, a few keyboard apps',
    numbers: ({ keyboard }) => `${keyboard.letters} letters`,
    fires: ifInput(({ keyboard }, { agent }) => isAndroidPhone(agent) && keyboard.letters >= 8),
  },
})
