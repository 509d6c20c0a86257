import type { Behavior } from '../../../../schemas/observations.ts'
import type { Listen } from './channel.ts'

// No person releases a button this soon.
const instantMs = 8

interface PressOptions {
  counts: () => Pick<Behavior['mouse'], 'presses' | 'instant_presses' | 'pressureless'>
  /** Called with the pointer event when a mouse button is pressed or released. */
  onButton(event: PointerEvent): void
}

/** Counts mouse button presses. Returns a predicate: true if the last press came from a screen reader or the like. */
export function trackPresses(listen: Listen, { counts, onButton }: PressOptions): () => boolean {
  let press: PointerEvent | undefined
  let isAssistive = false

  listen(['pointerdown'], (event) => {
    press = event.isTrusted && event.pointerType === 'mouse' ? event : undefined
    isAssistive = false
  })
  listen(['mousedown'], (event) => {
    // Presses by assistive technology also have no pressure, but their `detail` is 0.
    isAssistive = event.isTrusted && event.detail === 0
    if (isAssistive) press = undefined
    if (!press) return
    onButton(press)
    counts().presses++
    if (hasNoPressure(press)) counts().pressureless++
  })
  listen(['pointerup'], (event) => {
    if (!press || !event.isTrusted) return
    onButton(event)
    if (event.timeStamp - press.timeStamp < instantMs) counts().instant_presses++
    press = undefined
  })
  return () => isAssistive
}

/** Returns true for a pressed mouse button without pressure. Browsers report 0.5, as the standard requires. */
export function hasNoPressure({ buttons, pressure, pointerType }: PointerEvent): boolean {
  return pointerType === 'mouse' && buttons > 0 && pressure === 0
}
