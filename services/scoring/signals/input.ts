import type { Behavior } from '../../../schemas/observations.ts'
import type { Facts } from '../session/facts.ts'
import { defineSignals, formatMeasure, ifInput } from './signal.ts'

/** Returns true for Chromium on a desktop. Elsewhere, many of the traces below have innocent causes. */
export function inDesktopChromium({ agent, snapshot }: Facts): boolean {
  if (agent.engine !== 'blink') return false
  if (agent.system === 'windows' || agent.system === 'macos') return true
  // A phone that requests desktop sites claims Linux, but has a touch screen.
  return agent.system === 'linux' && (snapshot?.navigator.max_touch_points ?? 0) === 0
}

// Chromium on X11, as far as a page can tell.
function onX11(facts: Facts): boolean {
  const isPc = facts.snapshot?.navigator.platform === 'Linux x86_64'
  return isPc && !facts.agent.embedded && inDesktopChromium(facts)
}

function isOffClock({ mouse, keyboard }: Behavior, facts: Facts): boolean {
  const off = mouse.off_clock + keyboard.off_clock
  const total = mouse.moves + 2 * (mouse.presses + keyboard.keys)
  return onX11(facts) && off >= 5 && off >= total * 0.4
}

function isPressureless({ mouse }: Behavior, facts: Facts): boolean {
  return inDesktopChromium(facts) && mouse.pressureless > 0
}

// Not on macOS, where a notch scrolls farther the faster the wheel turns.
function isWheelUneven({ scroll }: Behavior, facts: Facts): boolean {
  const isEvenSystem = inDesktopChromium(facts) && facts.agent.system !== 'macos'
  return isEvenSystem && scroll.uneven_wheel >= 3 && scroll.uneven_wheel >= scroll.wheel * 0.3
}

// Not on iPads, which claim macOS, or phones: both capitalize automatically.
function isShiftless({ keyboard }: Behavior, facts: Facts): boolean {
  const { system, engine } = facts.agent
  const isDesktop = inDesktopChromium(facts) || (engine === 'gecko' && system !== 'android')
  return isDesktop && keyboard.shiftless > 0
}

function isMalformed({ keyboard }: Behavior, facts: Facts): boolean {
  return inDesktopChromium(facts) && !facts.agent.embedded && keyboard.malformed > 0
}

// Some keyboard layouts produce two characters with one key, so a few characters without keys are normal.
function isUnkeyed({ keyboard }: Behavior, facts: Facts): boolean {
  return inDesktopChromium(facts) && keyboard.unkeyed >= 4 && keyboard.unkeyed > keyboard.keys * 2
}

const traces = [isOffClock, isPressureless, isWheelUneven, isShiftless, isMalformed, isUnkeyed]

/** Returns true if any trace shows that software generated the input, which then doesn't count as natural. */
export function isMadeBySoftware(behavior: Behavior, facts: Facts): boolean {
  return traces.some((hasTrace) => hasTrace(behavior, facts))
}

export function hasExactClicks({ mouse, touch }: Behavior): boolean {
  return touch.events === 0 && mouse.clicks >= 2 && mouse.clicks_exact_center >= mouse.clicks
}

/**
 * Returns true if nearly all screen positions ignore the window's offset, as when a debugging protocol sends input, or
 * the height of its bars, as when a tool adds the offset.
 */
export function hasProtocolCoordinates({ mouse }: Behavior): boolean {
  const impossible = Math.max(mouse.screen_equals_client, mouse.frameless)
  return impossible >= 5 && impossible >= mouse.moves * 0.9
}

function hasInstantClicks({ mouse }: Behavior): boolean {
  return mouse.instant_presses >= 2 && mouse.instant_presses >= mouse.presses * 0.5
}

export const pointerSignals = defineSignals({
  pressed_without_pressure: {
    name: 'Mouse buttons without pressure',
    looksAt: 'in Chromium on a desktop, a mouse button is down but the reported pressure is 0',
    falsePositives: 'people who control a remote browser through the debugging protocol',
    numbers: ({ mouse: m }) => `${m.pressureless} events, ${m.presses} presses`,
    fires: ifInput(isPressureless),
  },
  uneven_wheel_notches: {
    name: 'Uneven mouse wheel steps',
    looksAt: 'in Chromium on Windows or Linux, wheel notches often scroll different distances',
    falsePositives: 'mouse drivers with wheel acceleration, frequent zooming',
    numbers: ({ scroll: s }) => `${s.uneven_wheel} of ${s.wheel} turns`,
    fires: ifInput(isWheelUneven),
  },
  unsynchronized_input_clock: {
    name: 'Input timestamps off the system clock',
    looksAt:
      'in Chromium on Linux, the timestamps of five or more inputs are not whole milliseconds apart',
    falsePositives: 'Wayland, remote windows, browsers embedded in an app',
    numbers: ({ mouse: m, keyboard: k }) =>
      `${m.off_clock + k.off_clock} of ${m.moves + 2 * (m.presses + k.keys)} events`,
    fires: ifInput(isOffClock),
  },
  exact_center_clicks: {
    name: 'Clicks on exact centers',
    looksAt: 'two or more mouse clicks, all on the exact center of their element',
    falsePositives: 'tiny targets, assistive pointers that snap to elements',
    numbers: ({ mouse: m }) => `${m.clicks_exact_center} of ${m.clicks} clicks`,
    fires: ifInput(hasExactClicks),
  },
  clicks_without_movement: {
    name: 'Clicks without movement',
    looksAt: 'two or more clicks without preceding pointer movement, touch or key',
    falsePositives: 'switch control, remote control tools',
    numbers: ({ mouse: m }) => `${m.clicks_without_move} of ${m.clicks} clicks`,
    fires: ifInput(({ mouse, touch }) => touch.events === 0 && mouse.clicks_without_move >= 2),
  },
  protocol_pointer_coordinates: {
    name: 'Pointer coordinates from a debugging protocol',
    looksAt:
      'the screen positions of nearly all pointer moves ignore the position of the window or its bars',
    falsePositives: 'full screen with developer tools below, browsers with all bars below the page',
    numbers: ({ mouse: m }) =>
      `${Math.max(m.screen_equals_client, m.frameless)} of ${m.moves} moves`,
    fires: ifInput(hasProtocolCoordinates),
  },
  instant_clicks: {
    name: 'Instant clicks',
    looksAt: 'at least half of the presses, and two or more, were released within 8 ms',
    falsePositives: 'dwell clicking, switch control, some touchpads',
    numbers: ({ mouse: m }) => `${m.instant_presses} of ${m.presses} presses`,
    fires: ifInput(hasInstantClicks),
  },
  straight_pointer_paths: {
    name: 'Straight pointer paths',
    looksAt: 'twenty or more moves along straight lines at an even speed',
    falsePositives: 'trackpoints, keyboard-controlled pointers, short sessions',
    numbers: ({ mouse: m }) =>
      `${m.moves} moves, line ${formatMeasure(m.straightness, 3)}, speed ± ${formatMeasure(m.speed_std, 3)} px/ms`,
    fires: ifInput(
      ({ mouse: m }) =>
        m.moves >= 20 &&
        m.straightness !== null &&
        m.straightness < 1.003 &&
        m.speed_std !== null &&
        m.speed_std < 0.05,
    ),
  },
  scrolls_without_cause: {
    name: 'Scrolling without input',
    looksAt: 'scrolling began three or more times with no wheel, key, touch or press before it',
    falsePositives: 'pages that scroll automatically, find in page, screen readers',
    numbers: ({ scroll: s }) => `${s.uncaused} times`,
    fires: ifInput(({ scroll }) => scroll.uncaused >= 3 && scroll.wheel === 0),
  },
})

export function isUniformTyping({ keyboard: k }: Behavior): boolean {
  return k.keys >= 10 && k.corrections === 0 && k.interval_std !== null && k.interval_std < 6
}

function isSuperhumanTyping({ keyboard: k }: Behavior): boolean {
  return k.keys >= 15 && k.interval_mean !== null && k.interval_mean < 25
}

// On-screen keyboards of phones always release keys at once.
function hasInstantKeys({ keyboard: k }: Behavior, { agent }: Facts): boolean {
  return agent.formFactor === 'desktop' && k.keys >= 8 && k.hold_mean !== null && k.hold_mean < 12
}

export const keyboardSignals = defineSignals({
  capitals_without_shift: {
    name: 'Capitals without Shift',
    looksAt: 'on a desktop, capitals or `@` were typed with neither Shift nor Caps Lock',
    falsePositives: 'custom layouts with `@` on the 2 key without Shift',
    numbers: ({ keyboard: k }) => `${k.shiftless} of ${k.keys} keys`,
    fires: ifInput(isShiftless),
  },
  malformed_key_events: {
    name: 'Incomplete key events',
    looksAt:
      'in Chromium on a desktop, key events lack the `keyCode`, or modifiers the left or right side',
    falsePositives: 'people who control a remote browser through the debugging protocol',
    numbers: ({ keyboard: k }) => `${k.malformed} of ${k.keys} keys`,
    fires: ifInput(isMalformed),
  },
  characters_without_keys: {
    name: 'Characters without keys',
    looksAt: 'in Chromium on a desktop, four or more characters arrived without key events',
    falsePositives: 'Windows tools that post characters to a window',
    numbers: ({ keyboard: k }) => `${k.unkeyed} characters, ${k.keys} keys`,
    fires: ifInput(isUnkeyed),
  },
  instant_key_presses: {
    name: 'Instant key presses',
    looksAt: 'on a desktop, eight or more keys, held for less than 12 ms on average',
    falsePositives: 'barcode scanners, on-screen keyboards, auto-type of password managers',
    numbers: ({ keyboard: k }) => `${k.keys} keys, ${formatMeasure(k.hold_mean)} ms down`,
    fires: ifInput(hasInstantKeys),
  },
  uniform_typing: {
    name: 'Uniform typing rhythm',
    looksAt: 'ten or more keys without corrections, with intervals that vary by less than 6 ms',
    falsePositives: 'held keys, input method editors, text expanders',
    numbers: ({ keyboard: k }) =>
      `${k.keys} keys, every ${formatMeasure(k.interval_mean)} ± ${formatMeasure(k.interval_std)} ms`,
    fires: ifInput(isUniformTyping),
  },
  superhuman_typing: {
    name: 'Superhuman typing speed',
    looksAt: 'fifteen or more keys, less than 25 ms apart on average',
    falsePositives: 'barcode scanners, text expanders',
    numbers: ({ keyboard: k }) => `${k.keys} keys, every ${formatMeasure(k.interval_mean)} ms`,
    fires: ifInput(isSuperhumanTyping),
  },
})
