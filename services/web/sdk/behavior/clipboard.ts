import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, type Listen, type Tracker } from './channel.ts'

/** That something was copied, cut or pasted; never what. */
export function trackClipboard(listen: Listen): Tracker<Behavior['clipboard']> {
  const channel = createChannel()
  let copies = 0
  let pastes = 0

  listen(['copy', 'cut', 'paste'], (event) => {
    channel.record(event)
    if (event.type === 'paste') pastes++
    else copies++
  })

  return {
    take() {
      const summary = { ...channel.take(), copies, pastes }
      copies = pastes = 0
      return summary
    },
  }
}
