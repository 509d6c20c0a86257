import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, createStats, type Listen, type Tracker } from './channel.ts'

// No finger leaves the screen this soon.
const instantMs = 8

/** Tracks touches, the variation of their contact size, and traces of injection. */
export function trackTouch(listen: Listen): Tracker<Behavior['touch']> {
  const channel = createChannel(() => ({ touches: 0, instant: 0, plain: 0, displaced: 0 }))
  const startTimes = new Map<number, number>()
  let radii = createStats()

  listen(['touchstart', 'touchmove', 'touchend'], (event) => {
    channel.record(event)
    for (const touch of event.changedTouches) radii.add(touch.radiusX)
  })
  listen(['touchstart'], (event) => {
    const { counts } = channel
    counts.touches++
    if (!event.isTrusted) return
    for (const touch of event.changedTouches) {
      startTimes.set(touch.identifier, event.timeStamp)
      if (hasDefaultContact(touch)) counts.plain++
      if (isDisplaced(touch)) counts.displaced++
    }
  })
  listen(['touchend'], (event) => {
    for (const { identifier } of event.changedTouches) {
      if (event.timeStamp - (startTimes.get(identifier) ?? 0) < instantMs) channel.counts.instant++
      startTimes.delete(identifier)
    }
  })
  listen(['touchcancel'], () => startTimes.clear())

  return {
    drain() {
      const summary = { ...channel.drain(), radius_std: radii.deviation() }
      radii = createStats()
      return summary
    },
  }
}

const scale = () => window.visualViewport?.scale ?? 1

// Returns true if radius and force have their default values, as in many injected touches.
function hasDefaultContact({ radiusX, radiusY, force }: Touch): boolean {
  const isUnit = (radius: number) => Math.abs(radius * scale() - 1) < 0.05
  return isUnit(radiusX) && isUnit(radiusY) && force === 1
}

// Returns true if screen and page position disagree although the window is as wide as the screen.
function isDisplaced({ screenX, clientX }: Touch): boolean {
  const left = window.visualViewport?.offsetLeft ?? 0
  const offset = screenX - (clientX - left) * scale()
  return window.outerWidth === window.screen.width && Math.abs(offset) >= 4
}
