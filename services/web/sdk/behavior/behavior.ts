import type { Behavior } from '../../../../schemas/observations.ts'
import { createListen } from './channel.ts'
import { trackClipboard } from './clipboard.ts'
import { trackForm } from './form.ts'
import { trackKeyboard } from './keyboard.ts'
import { trackMouse } from './mouse.ts'
import { trackScroll } from './scroll.ts'
import { trackTouch } from './touch.ts'

export interface BehaviorTracker {
  /** What happened since the last call, or undefined when nothing did. */
  take(): Behavior | undefined
}

/** Follows how the page is used until `signal` aborts. */
export function trackBehavior(signal: AbortSignal): BehaviorTracker {
  const listen = createListen(signal)
  const mouse = trackMouse(listen)
  const keyboard = trackKeyboard(listen)
  const touch = trackTouch(listen)
  const scroll = trackScroll(listen)
  const form = trackForm(listen)
  const clipboard = trackClipboard(listen)
  return {
    take() {
      const behavior = {
        mouse: mouse.take(),
        keyboard: keyboard.take(),
        touch: touch.take(),
        scroll: scroll.take(),
        form: form.take(),
        clipboard: clipboard.take(),
      }
      return Object.values(behavior).some(({ events }) => events > 0) ? behavior : undefined
    },
  }
}
