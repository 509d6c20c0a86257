import type { Behavior } from '../../../schemas/observations.ts'
import type { Facts } from '../session/facts.ts'
import { formatted, input, signals } from './signal.ts'

/** Traces that Chromium leaves on a desktop: elsewhere the same members have other, honest reasons. */
export function inDesktopChromium({ agent, snapshot }: Facts): boolean {
  if (agent.engine !== 'blink') return false
  if (agent.system === 'windows' || agent.system === 'macos') return true
  // A phone that asks for the page of a desktop claims Linux, and has a touch screen.
  return agent.system === 'linux' && (snapshot?.navigator.max_touch_points ?? 0) === 0
}

// Chromium on X11, by all that a page can see of it.
function onX11(facts: Facts): boolean {
  const isPc = facts.snapshot?.navigator.platform === 'Linux x86_64'
  return isPc && !facts.agent.embedded && inDesktopChromium(facts)
}

function isOffClock({ mouse, keyboard }: Behavior, facts: Facts): boolean {
  const off = mouse.off_clock + keyboard.off_clock
  const all = mouse.moves + 2 * (mouse.presses + keyboard.keys)
  return onX11(facts) && off >= 5 && off >= all * 0.4
}

function isPressureless({ mouse }: Behavior, facts: Facts): boolean {
  return inDesktopChromium(facts) && mouse.pressureless > 0
}

// macOS is left out: it lets a notch scroll farther, the faster the wheel turns.
function isWheelUneven({ scroll }: Behavior, facts: Facts): boolean {
  const isEvenSystem = inDesktopChromium(facts) && facts.agent.system !== 'macos'
  return isEvenSystem && scroll.uneven_wheel >= 3 && scroll.uneven_wheel >= scroll.wheel * 0.3
}

// iPads, which claim macOS, capitalise by themselves, and so may phones.
function isShiftless({ keyboard }: Behavior, facts: Facts): boolean {
  const { system, engine } = facts.agent
  const isDesktop = inDesktopChromium(facts) || (engine === 'gecko' && system !== 'android')
  return isDesktop && keyboard.shiftless > 0
}

function isMalformed({ keyboard }: Behavior, facts: Facts): boolean {
  return inDesktopChromium(facts) && !facts.agent.embedded && keyboard.malformed > 0
}

// Some layouts make two characters with one key, so that a few characters without a key mean nothing.
function isUnkeyed({ keyboard }: Behavior, facts: Facts): boolean {
  return inDesktopChromium(facts) && keyboard.unkeyed >= 4 && keyboard.unkeyed > keyboard.keys * 2
}

const traces = [isOffClock, isPressureless, isWheelUneven, isShiftless, isMalformed, isUnkeyed]

/** Whether any trace shows that software made the input, so that nothing in it speaks for a person. */
export function isMadeBySoftware(behavior: Behavior, facts: Facts): boolean {
  return traces.some((leaves) => leaves(behavior, facts))
}

export function exactClicks({ mouse, touch }: Behavior): boolean {
  return touch.events === 0 && mouse.clicks >= 2 && mouse.clicks_exact_center >= mouse.clicks
}

/** Without the window's offset it is a protocol's position; without its bars, a patch of one. */
export function protocolCoordinates({ mouse }: Behavior): boolean {
  const impossible = Math.max(mouse.screen_equals_client, mouse.frameless)
  return impossible >= 5 && impossible >= mouse.moves * 0.9
}

function hasInstantClicks({ mouse }: Behavior): boolean {
  return mouse.instant_presses >= 2 && mouse.instant_presses >= mouse.presses * 0.5
}

export const pointerSignals = signals({
  pressed_without_pressure: {
    name: 'Mouse buttons without pressure',
    looksAt: 'in Chromium on a desktop, a mouse button is down and the pressure is 0',
    falsePositives: 'a person who steers a remote browser through the debugging protocol',
    measured: ({ mouse: m }) => `${m.pressureless} events, ${m.presses} presses`,
    fires: input(isPressureless),
  },
  uneven_wheel_notches: {
    name: 'Notches of different length',
    looksAt:
      'in Chromium on Windows or Linux, one notch of the wheel often scrolls farther than another',
    falsePositives: 'drivers that speed the wheel up, zooming again and again',
    measured: ({ scroll: s }) => `${s.uneven_wheel} of ${s.wheel} turns`,
    fires: input(isWheelUneven),
  },
  unsynchronized_input_clock: {
    name: "Input without the window system's clock",
    looksAt:
      'in Chromium on Linux, times of five or more inputs do not differ by whole milliseconds',
    falsePositives: 'Wayland, windows shown on another machine, browsers drawn inside an app',
    measured: ({ mouse: m, keyboard: k }) =>
      `${m.off_clock + k.off_clock} of ${m.moves + 2 * (m.presses + k.keys)} events`,
    fires: input(isOffClock),
  },
  exact_center_clicks: {
    name: 'Clicks on exact centres',
    looksAt: 'two or more mouse clicks, each on the exact centre of its element',
    falsePositives: 'tiny targets, assistive pointers that snap to elements',
    measured: ({ mouse: m }) => `${m.clicks_exact_center} of ${m.clicks} clicks`,
    fires: input(exactClicks),
  },
  clicks_without_movement: {
    name: 'Clicks without movement',
    looksAt: 'two or more clicks that no pointer movement, touch or key led to',
    falsePositives: 'switch control, remote control tools',
    measured: ({ mouse: m }) => `${m.clicks_without_move} of ${m.clicks} clicks`,
    fires: input(({ mouse, touch }) => touch.events === 0 && mouse.clicks_without_move >= 2),
  },
  protocol_pointer_coordinates: {
    name: 'Pointer coordinates of a debugging protocol',
    looksAt:
      'screen positions of nearly all pointer moves leave out the place of the window or its bars',
    falsePositives: 'full screen with developer tools below, browsers with all bars below the page',
    measured: ({ mouse: m }) =>
      `${Math.max(m.screen_equals_client, m.frameless)} of ${m.moves} moves`,
    fires: input(protocolCoordinates),
  },
  instant_clicks: {
    name: 'Clicks that last no time',
    looksAt: 'two or more presses, and half of all, were released within 8 ms',
    falsePositives: 'dwell clicking, switch control, some touchpads',
    measured: ({ mouse: m }) => `${m.instant_presses} of ${m.presses} presses`,
    fires: input(hasInstantClicks),
  },
  straight_pointer_paths: {
    name: 'Straight pointer paths',
    looksAt: 'twenty or more moves along straight lines at an even speed',
    falsePositives: 'trackpoints, keyboards that move the pointer, short sessions',
    measured: ({ mouse: m }) =>
      `${m.moves} moves, line ${formatted(m.straightness, 3)}, speed ± ${formatted(m.speed_std, 3)} px/ms`,
    fires: input(
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
    falsePositives: 'pages that scroll by themselves, find in page, screen readers',
    measured: ({ scroll: s }) => `${s.uncaused} times`,
    fires: input(({ scroll }) => scroll.uncaused >= 3 && scroll.wheel === 0),
  },
})

export function isUniformTyping({ keyboard: k }: Behavior): boolean {
  return k.keys >= 10 && k.corrections === 0 && k.interval_std !== null && k.interval_std < 6
}

function isSuperhumanTyping({ keyboard: k }: Behavior): boolean {
  return k.keys >= 15 && k.interval_mean !== null && k.interval_mean < 25
}

// Keyboards on the screen of a phone do so always.
function hasInstantKeys({ keyboard: k }: Behavior, { agent }: Facts): boolean {
  return agent.formFactor === 'desktop' && k.keys >= 8 && k.hold_mean !== null && k.hold_mean < 12
}

export const keyboardSignals = signals({
  capitals_without_shift: {
    name: 'Capitals without Shift',
    looksAt: 'on a desktop, capitals or `@` came from a key with neither Shift nor Caps Lock',
    falsePositives: 'layouts made by hand that have `@` on the key 2 without Shift',
    measured: ({ keyboard: k }) => `${k.shiftless} of ${k.keys} keys`,
    fires: input(isShiftless),
  },
  malformed_key_events: {
    name: 'Incomplete key events',
    looksAt: 'in Chromium on a desktop, keys lack their number, or modifiers their side',
    falsePositives: 'a person who steers a remote browser through the debugging protocol',
    measured: ({ keyboard: k }) => `${k.malformed} of ${k.keys} keys`,
    fires: input(isMalformed),
  },
  characters_without_keys: {
    name: 'Characters without keys',
    looksAt: 'in Chromium on a desktop, four or more characters were typed without a key',
    falsePositives: 'tools for Windows that post characters to a window',
    measured: ({ keyboard: k }) => `${k.unkeyed} characters, ${k.keys} keys`,
    fires: input(isUnkeyed),
  },
  instant_key_presses: {
    name: 'Keys that are down no time',
    looksAt: 'on a desktop, eight or more keys that are down for less than 12 ms on average',
    falsePositives: 'barcode scanners, keyboards on the screen, auto-type of password managers',
    measured: ({ keyboard: k }) => `${k.keys} keys, ${formatted(k.hold_mean)} ms down`,
    fires: input(hasInstantKeys),
  },
  uniform_typing: {
    name: 'Uniform typing rhythm',
    looksAt: 'ten or more keys with intervals that vary by less than 6 ms and no correction',
    falsePositives: 'held keys, input method editors, text expanders',
    measured: ({ keyboard: k }) =>
      `${k.keys} keys, every ${formatted(k.interval_mean)} ± ${formatted(k.interval_std)} ms`,
    fires: input(isUniformTyping),
  },
  superhuman_typing: {
    name: 'Typing faster than people type',
    looksAt: 'fifteen or more keys at under 25 ms on average',
    falsePositives: 'barcode scanners, text expanders',
    measured: ({ keyboard: k }) => `${k.keys} keys, every ${formatted(k.interval_mean)} ms`,
    fires: input(isSuperhumanTyping),
  },
})
