import type { Behavior } from '../../../../schemas/observations.ts'
import type { Listen, Tracker } from './channel.ts'

type Presses = Pick<Behavior['mouse'], 'presses' | 'instant_presses' | 'pressureless'>

// No finger lets a button go within these milliseconds.
const instantMs = 8

interface PressTracker extends Tracker<Presses> {
  // Whether the last press was made by a screen reader or the like, for which no pointer is needed.
  isAssistive(): boolean
}

export function trackPresses(listen: Listen, onButton: (event: PointerEvent) => void): PressTracker {
  let counts = noCounts()
  let press: PointerEvent | undefined
  let assistive = false

  listen(['pointerdown'], (event) => {
    press = event.isTrusted && event.pointerType === 'mouse' ? event : undefined
    assistive = false
  })
  listen(['mousedown'], (event) => {
    // Assistive technology presses without pressure, too, but is no first or second click.
    assistive = event.isTrusted && event.detail === 0
    if (assistive) press = undefined
    if (!press) return
    onButton(press)
    counts.presses++
    if (hasNoPressure(press)) counts.pressureless++
  })
  listen(['pointerup'], (event) => {
    if (!press || !event.isTrusted) return
    onButton(event)
    if (event.timeStamp - press.timeStamp < instantMs) counts.instant_presses++
    press = undefined
  })

  return {
    isAssistive: () => assistive,
    drain() {
      const summary = counts
      counts = noCounts()
      return summary
    },
  }
}

function noCounts(): Presses {
  return { presses: 0, instant_presses: 0, pressureless: 0 }
}

// A mouse that measures no pressure has 0.5 while a button is down, by the standard.
export function hasNoPressure({ buttons, pressure, pointerType }: PointerEvent): boolean {
  return pointerType === 'mouse' && buttons > 0 && pressure === 0
}
