import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, createListen, createSpread, type Listen, round, type Tracker } from './channel.ts'
import { trackForm } from './form.ts'
import { trackMouse } from './mouse.ts'

interface BehaviorTracker {
  drain(): Behavior | undefined
}

export function trackBehavior(signal: AbortSignal): BehaviorTracker {
  const listen = createListen(signal)
  const mouse = trackMouse(listen)
  const keyboard = trackKeyboard(listen)
  const touch = trackTouch(listen)
  const scroll = trackScroll(listen)
  const form = trackForm(listen)
  const clipboard = trackClipboard(listen)
  return {
    drain() {
      const behavior = {
        mouse: mouse.drain(),
        keyboard: keyboard.drain(),
        touch: touch.drain(),
        scroll: scroll.drain(),
        form: form.drain(),
        clipboard: clipboard.drain(),
      }
      const isUsed =
        Object.values(behavior).some(({ events }) => events > 0) || behavior.mouse.activations > 0
      return isUsed ? behavior : undefined
    },
  }
}

/** The rhythm of typing. Which keys were pressed is only used to pair a press with its release, never sent. */
function trackKeyboard(listen: Listen): Tracker<Behavior['keyboard']> {
  const channel = createChannel()
  const pressedAt = new Map<string, number>()
  let counts = noCounts()
  let holds = createSpread()

  listen(['keydown'], (event) => {
    if (event.repeat) return
    channel.record(event)
    counts.keys++
    if (pressedAt.size > 0) counts.rollovers++
    if (event.key === 'Backspace' || event.key === 'Delete') counts.corrections++
    pressedAt.set(event.code, event.timeStamp)
  })
  listen(['keyup'], (event) => {
    const pressed = pressedAt.get(event.code)
    if (pressed !== undefined) holds.add(event.timeStamp - pressed)
    pressedAt.delete(event.code)
  })
  // A release outside of the window is never seen; a key must not count as pressed for ever.
  listen(['blur'], () => pressedAt.clear())

  return {
    drain() {
      const spread = { hold_mean: holds.mean(), hold_std: holds.deviation() }
      const summary = { ...channel.drain(), ...counts, ...spread }
      counts = noCounts()
      holds = createSpread()
      return summary
    },
  }
}

function noCounts() {
  return { keys: 0, rollovers: 0, corrections: 0 }
}

function trackScroll(listen: Listen): Tracker<Behavior['scroll']> {
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
    drain() {
      const summary = channel.drain()
      const moved = summary.events > 0 ? round(distance) : null
      const summed = { ...summary, wheel, distance: moved }
      wheel = distance = 0
      return summed
    },
  }
}

/** Touches and how much the size of the contact varies, which injected touches do not do. */
function trackTouch(listen: Listen): Tracker<Behavior['touch']> {
  const channel = createChannel()
  let touches = 0
  let radii = createSpread()

  listen(['touchstart', 'touchmove', 'touchend'], (event) => {
    channel.record(event)
    if (event.type === 'touchstart') touches++
    for (const touch of event.changedTouches) radii.add(touch.radiusX)
  })

  return {
    drain() {
      const summary = { ...channel.drain(), touches, radius_std: radii.deviation() }
      touches = 0
      radii = createSpread()
      return summary
    },
  }
}

function trackClipboard(listen: Listen): Tracker<Behavior['clipboard']> {
  const channel = createChannel()
  let copies = 0
  let pastes = 0

  listen(['copy', 'cut', 'paste'], (event) => {
    channel.record(event)
    if (event.type === 'paste') pastes++
    else copies++
  })

  return {
    drain() {
      const summary = { ...channel.drain(), copies, pastes }
      copies = pastes = 0
      return summary
    },
  }
}
