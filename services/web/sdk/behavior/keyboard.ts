import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, createSpread, type Listen, type Tracker } from './channel.ts'

/** The rhythm of typing. Which keys were pressed is only used to pair a press with its release, never sent. */
export function trackKeyboard(listen: Listen): Tracker<Behavior['keyboard']> {
  const channel = createChannel()
  const held = new Map<string, number>()
  let counts = noCounts()
  let holds = createSpread()

  listen(['keydown'], (event) => {
    if (event.repeat) return
    channel.record(event)
    counts.keys++
    if (held.size > 0) counts.rollovers++
    if (event.key === 'Backspace' || event.key === 'Delete') counts.corrections++
    held.set(event.code, event.timeStamp)
  })
  listen(['keyup'], (event) => {
    const pressed = held.get(event.code)
    if (pressed !== undefined) holds.add(event.timeStamp - pressed)
    held.delete(event.code)
  })
  // A release outside of the window is never seen; a key must not count as held for ever.
  listen(['blur'], () => held.clear())

  return {
    take() {
      const spread = { hold_mean: holds.mean(), hold_std: holds.deviation() }
      const summary = { ...channel.take(), ...counts, ...spread }
      counts = noCounts()
      holds = createSpread()
      return summary
    },
  }
}

function noCounts() {
  return { keys: 0, rollovers: 0, corrections: 0 }
}
