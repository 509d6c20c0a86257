import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, createSpread, type Listen, type Tracker } from './channel.ts'

// No finger leaves the screen within these milliseconds.
const instantMs = 8

/** Touches, how much the size of the contact varies, and what injected touches leave out. */
export function trackTouch(listen: Listen): Tracker<Behavior['touch']> {
  const channel = createChannel(() => ({ touches: 0, instant: 0, plain: 0, displaced: 0 }))
  const begun = new Map<number, number>()
  let radii = createSpread()

  listen(['touchstart', 'touchmove', 'touchend'], (event) => {
    channel.record(event)
    for (const touch of event.changedTouches) radii.add(touch.radiusX)
  })
  listen(['touchstart'], (event) => {
    const { counts } = channel
    counts.touches++
    if (!event.isTrusted) return
    for (const touch of event.changedTouches) {
      begun.set(touch.identifier, event.timeStamp)
      if (isPlain(touch)) counts.plain++
      if (isDisplaced(touch)) counts.displaced++
    }
  })
  listen(['touchend'], (event) => {
    for (const { identifier } of event.changedTouches) {
      if (event.timeStamp - (begun.get(identifier) ?? 0) < instantMs) channel.counts.instant++
      begun.delete(identifier)
    }
  })
  listen(['touchcancel'], () => begun.clear())

  return {
    drain() {
      const summary = { ...channel.drain(), radius_std: radii.deviation() }
      radii = createSpread()
      return summary
    },
  }
}

const scale = () => window.visualViewport?.scale ?? 1

// What a contact is by default, where nobody says what it is.
function isPlain({ radiusX, radiusY, force }: Touch): boolean {
  const isOne = (radius: number) => Math.abs(radius * scale() - 1) < 0.05
  return isOne(radiusX) && isOne(radiusY) && force === 1
}

// A window as wide as the screen has nothing to the left of the page, so both positions of a real contact agree.
function isDisplaced({ screenX, clientX }: Touch): boolean {
  const left = window.visualViewport?.offsetLeft ?? 0
  const offset = screenX - (clientX - left) * scale()
  return window.outerWidth === window.screen.width && Math.abs(offset) >= 4
}
