import type { Behavior } from '../../../../schemas/observations.ts'
import type { Listen } from './channel.ts'

// No person releases a button within these milliseconds.
const instantMs = 8

interface PressOptions {
  counts: () => Pick<Behavior['mouse'], 'presses' | 'instant_presses' | 'pressureless'>
  /** Called with the pointer event when a mouse button is pressed or released. */
  onButton(event: PointerEvent): void
}

/**
 * Counts mouse button presses. Returns a predicate: true if the last press came from assistive technology, such as a
 * screen reader.
 */
export function trackPresses(listen: Listen, { counts, onButton }: PressOptions): () => boolean {
  let press: PointerEvent | undefined
  let assistive = false

  listen(['pointerdown'], (event) => {
    press = event.isTrusted && event.pointerType === 'mouse' ? event : undefined
    assistive = false
  })
  listen(['mousedown'], (event) => {
    // Assistive technology also has no pressure, but its `detail` is 0.
    assistive = event.isTrusted && event.detail === 0
    if (assistive) press = undefined
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
  return () => assistive
}

/** Returns true for a pressed mouse button without pressure; the standard requires 0.5. */
export function hasNoPressure({ buttons, pressure, pointerType }: PointerEvent): boolean {
  return pointerType === 'mouse' && buttons > 0 && pressure === 0
}
