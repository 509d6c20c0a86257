import type { Behavior } from '../../../../schemas/observations.ts'
import type { Listen } from './channel.ts'

// No finger lets a button go within these milliseconds.
const instantMs = 8

interface PressOptions {
  counts: () => Pick<Behavior['mouse'], 'presses' | 'instant_presses' | 'pressureless'>
  /** Called when a button of a mouse goes down, with the press, and when it goes up. */
  onButton(event: PointerEvent): void
}

/**
 * Counts what the buttons of a mouse do. Returns whether the last press was made by a screen reader or the like, which
 * needs no pointer.
 */
export function trackPresses(listen: Listen, { counts, onButton }: PressOptions): () => boolean {
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

/** A mouse that measures no pressure has 0.5 while a button is down, by the standard. */
export function hasNoPressure({ buttons, pressure, pointerType }: PointerEvent): boolean {
  return pointerType === 'mouse' && buttons > 0 && pressure === 0
}
