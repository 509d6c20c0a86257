import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, createListen, type Listen, type Tracker } from './channel.ts'
import { trackForm } from './form.ts'
import { trackKeyboard } from './keyboard.ts'
import { trackMouse } from './mouse.ts'
import { trackScroll } from './scroll.ts'
import { trackTouch } from './touch.ts'

/** Tracks all input of the page until the signal is aborted. `drain` returns undefined if there was none. */
export function trackBehavior(signal: AbortSignal): Tracker<Behavior | undefined> {
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

function trackClipboard(listen: Listen): Tracker<Behavior['clipboard']> {
  const channel = createChannel(() => ({ copies: 0, pastes: 0 }))
  listen(['copy', 'cut', 'paste'], (event) => {
    channel.record(event)
    if (event.type === 'paste') channel.counts.pastes++
    else channel.counts.copies++
  })
  return channel
}
