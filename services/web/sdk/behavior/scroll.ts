import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, type Listen, round, type Tracker } from './channel.ts'

// Scrolling must begin within this time after input that can cause it.
const causeMs = 1000
// A pause of this length ends a scroll.
const pauseMs = 500
const causes = [
  'wheel',
  'keydown',
  'touchmove',
  'touchend',
  'pointerdown',
  'focusin',
  'resize',
] as const

export function trackScroll(listen: Listen): Tracker<Behavior['scroll']> {
  const channel = createChannel(() => ({ wheel: 0, distance: 0, uneven_wheel: 0, uncaused: 0 }))
  const isUneven = createNotchCheck()
  const positions = new WeakMap<EventTarget, number>()
  const last = { cause: Number.NEGATIVE_INFINITY, scroll: Number.NEGATIVE_INFINITY }

  listen(causes, ({ timeStamp }) => {
    last.cause = timeStamp
  })
  listen(['wheel'], (event) => {
    channel.record(event)
    channel.counts.wheel++
    if (isUneven(event)) channel.counts.uneven_wheel++
  })
  listen(['scroll'], (event) => {
    channel.record(event)
    const { target, timeStamp } = event
    if (timeStamp - last.scroll > pauseMs && timeStamp - last.cause > causeMs)
      channel.counts.uncaused++
    last.scroll = timeStamp
    if (!target) return
    const position = target instanceof Element ? target.scrollTop : window.scrollY
    channel.counts.distance += Math.abs(position - (positions.get(target) ?? 0))
    positions.set(target, position)
  })

  return {
    drain() {
      const summary = channel.drain()
      return { ...summary, distance: summary.events > 0 ? round(summary.distance) : null }
    },
  }
}

// Returns a predicate: true if a wheel notch (120 in `wheelDeltaY`) scrolls a different distance than the last one.
function createNotchCheck(): (event: WheelEvent) => boolean {
  let distancePerUnit: number | undefined
  return (event) => {
    const turned =
      'wheelDeltaY' in event && typeof event.wheelDeltaY === 'number' ? event.wheelDeltaY : 0
    // With Control, the wheel zooms, and distances differ.
    if (!event.isTrusted || event.ctrlKey || turned === 0 || turned % 120 !== 0) return false
    const previous = distancePerUnit
    distancePerUnit = Math.abs(event.deltaY / turned)
    return previous !== undefined && Math.abs(distancePerUnit - previous) > 0.05 * previous
  }
}
