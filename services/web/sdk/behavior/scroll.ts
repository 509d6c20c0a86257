import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, type Listen, round, type Tracker } from './channel.ts'

/** Scrolling, by wheel or otherwise; distance in pixels, whatever the direction. */
export function trackScroll(listen: Listen): Tracker<Behavior['scroll']> {
  const channel = createChannel()
  const positions = new WeakMap<EventTarget, number>()
  let wheel = 0
  let distance = 0

  listen(['wheel'], (event) => {
    channel.record(event)
    wheel++
  })
  listen(['scroll'], (event) => {
    channel.record(event)
    const { target } = event
    if (!target) return
    const position = target instanceof Element ? target.scrollTop : window.scrollY
    distance += Math.abs(position - (positions.get(target) ?? 0))
    positions.set(target, position)
  })

  return {
    take() {
      const summary = channel.take()
      const moved = summary.events > 0 ? round(distance) : null
      const taken = { ...summary, wheel, distance: moved }
      wheel = distance = 0
      return taken
    },
  }
}
