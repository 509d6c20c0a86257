import type { Behavior } from '../../../schemas/observations.ts'
import type { Agent } from '../agent.ts'
import { type Facts, input, type Signal } from '../facts.ts'

const behaviorBase = { role: 'risk', category: 'behavioral', strength: 'moderate' } as const

const isPhone = ({ formFactor }: Agent) => formFactor === 'mobile'
const isAndroid = (agent: Agent) =>
  isPhone(agent) && agent.system === 'android' && agent.engine === 'blink' && !agent.webView

/** Contacts that a program made: they last no time, have no size, or lie beside their place on the screen. */
export function markedTouches({ touch }: Behavior, { agent }: Pick<Facts, 'agent'>): number {
  return Math.max(touch.instant, touch.plain, isAndroid(agent) ? touch.displaced : 0)
}

function isEmulatedTouch(behavior: Behavior, facts: Facts): boolean {
  const { formFactor } = facts.agent
  const isMobile = formFactor === 'mobile' || formFactor === 'tablet'
  const marked = markedTouches(behavior, facts)
  return isMobile && marked >= 2 && marked >= behavior.touch.touches * 0.5
}

/** What phones do not do, and a computer that poses as one does. */
export const phoneSignals: Signal[] = [
  {
    ...behaviorBase,
    slug: 'emulated_touch',
    channel: 'touch',
    name: 'Touches of no finger',
    score: 30,
    looksAt:
      'on a phone or tablet, two touches and half of all end within 8 ms, have radii and force of 1, or lie beside their place on the screen',
    falsePositives: 'device emulation in developer tools, tests with `adb`, assistive apps that make touches',
    measured: ({ touch: t }) =>
      `${t.instant} at once, ${t.plain} without size and ${t.displaced} displaced of ${t.touches}`,
    fires: input(isEmulatedTouch),
  },
  {
    ...behaviorBase,
    slug: 'mouse_on_phone',
    channel: 'pointer',
    name: 'Mouse on a phone',
    score: 25,
    looksAt: 'on a phone, the button of a mouse was pressed',
    falsePositives: 'phones with a mouse or in a dock, phones that are steered from a computer',
    measured: ({ mouse }) => `${mouse.presses} presses`,
    fires: input(({ mouse }, { agent }) => isPhone(agent) && mouse.presses > 0),
  },
  {
    ...behaviorBase,
    slug: 'keyboard_on_phone',
    channel: 'keyboard',
    name: 'Keyboard of a computer on a phone',
    score: 20,
    looksAt: 'on an Android phone, eight or more letters came from keys with numbers of their own',
    falsePositives: 'phones with a keyboard or in a dock, a few keyboard apps',
    measured: ({ keyboard }) => `${keyboard.letters} letters`,
    fires: input(({ keyboard }, { agent }) => isAndroid(agent) && keyboard.letters >= 8),
  },
]
