import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, createSpread, type Listen, type Tracker } from './channel.ts'

/** Touches and how much the size of the contact varies, which injected touches do not do. */
export function trackTouch(listen: Listen): Tracker<Behavior['touch']> {
  const channel = createChannel()
  let touches = 0
  let radii = createSpread()

  listen(['touchstart', 'touchmove', 'touchend'], (event) => {
    channel.record(event)
    if (event.type === 'touchstart') touches++
    for (const touch of event.changedTouches) radii.add(touch.radiusX)
  })

  return {
    take() {
      const summary = { ...channel.take(), touches, radius_std: radii.deviation() }
      touches = 0
      radii = createSpread()
      return summary
    },
  }
}
