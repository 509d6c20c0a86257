import type { Behavior } from '../../../schemas/observations.ts'
import { input, type Signal } from './signal.ts'

const base = { family: 'behavior', role: 'risk', category: 'behavioral' } as const

/** Clicks as scripts make them: each on the exact centre of its element. */
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

export function isUniformTyping({ keyboard: k }: Behavior): boolean {
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
    ...base,
    slug: 'untrusted_input',
    name: 'Input made by script',
    strength: 'strong',
    score: 40,
    looksAt: 'half or more of pointer, key and touch events are not trusted',
    falsePositives: 'accessibility tools, password managers, pages that dispatch their own events',
    fires: input(mostlyUntrusted),
  },
  {
    ...base,
    slug: 'exact_center_clicks',
    name: 'Clicks on exact centres',
    strength: 'moderate',
    score: 28,
    looksAt: 'two or more mouse clicks, each on the exact centre of its element',
    falsePositives: 'tiny targets, assistive pointers that snap to elements',
    fires: input(exactClicks),
  },
  {
    ...base,
    slug: 'clicks_without_movement',
    name: 'Clicks without movement',
    strength: 'moderate',
    score: 20,
    looksAt: 'two or more clicks that no pointer movement, touch or key led to',
    falsePositives: 'switch control, remote control tools',
    fires: input(({ mouse, touch }) => touch.events === 0 && mouse.clicks_without_move >= 2),
  },
  {
    ...base,
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
    ...base,
    slug: 'uniform_typing',
    name: 'Uniform typing rhythm',
    strength: 'moderate',
    score: 25,
    looksAt: 'ten or more keys with intervals that vary by less than 6 ms and no correction',
    falsePositives: 'held keys, input method editors, text expanders',
    fires: input(isUniformTyping),
  },
  {
    ...base,
    slug: 'superhuman_typing',
    name: 'Typing faster than people type',
    strength: 'moderate',
    score: 25,
    looksAt: 'fifteen or more keys at under 25 ms on average',
    falsePositives: 'barcode scanners, text expanders',
    fires: input(isSuperhumanTyping),
  },
  {
    ...base,
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
    ...base,
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
    ...base,
    slug: 'instant_submit',
    name: 'Form submitted at once',
    strength: 'weak',
    score: 10,
    looksAt: 'a form was submitted within half a second of its first change',
    falsePositives: 'autofill with submit, one-field forms',
    fires: input(({ form: f }) => f.submits > 0 && f.time_to_submit_ms !== null && f.time_to_submit_ms < 500),
  },
]
