import type { Listen } from './channel.ts'

const farPixels = 200
// If an event is this late, intermediate events may have been lost.
const lateMs = 100

interface Position {
  clientX: number
  clientY: number
}

/** Detects pointer jumps: a single move event that covers a long distance and ends where a button is pressed. */
export function createJumps(listen: Listen) {
  let last: Position | undefined
  let jumped = false

  function reset(): void {
    last = undefined
    jumped = false
  }
  // The page does not see pointer moves outside the window or inside frames.
  listen(['mouseout'], ({ relatedTarget, target }) => {
    if (relatedTarget === null || target instanceof HTMLIFrameElement) reset()
  })
  listen(['focus', 'blur', 'resize'], ({ target }) => {
    if (target === window) reset()
  })

  return {
    move(event: PointerEvent, isCoalesced: boolean): void {
      const isLate = performance.now() - event.timeStamp > lateMs
      jumped = last !== undefined && !isLate && !isCoalesced && distance(last, event) > farPixels
      last = event
    },
    landsAt: (press: Position) => jumped && last !== undefined && distance(last, press) <= 3,
  }
}

function distance(from: Position, to: Position): number {
  return Math.hypot(from.clientX - to.clientX, from.clientY - to.clientY)
}
