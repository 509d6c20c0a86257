import type { Listen } from './channel.ts'

const farPixels = 200
// Milliseconds of delay after which intermediate events may be lost.
const lateMs = 100

interface Place {
  clientX: number
  clientY: number
}

/** Detects pointer jumps: a single move event that covers a long distance and ends where a button is pressed. */
export function createJumps(listen: Listen) {
  let last: Place | undefined
  let jumped = false

  function forget(): void {
    last = undefined
    jumped = false
  }
  // The pointer's path outside the page and inside frames is not visible.
  listen(['mouseout'], ({ relatedTarget, target }) => {
    if (relatedTarget === null || target instanceof HTMLIFrameElement) forget()
  })
  listen(['focus', 'blur', 'resize'], ({ target }) => {
    if (target === window) forget()
  })

  return {
    move(event: PointerEvent, isCoalesced: boolean): void {
      const isLate = performance.now() - event.timeStamp > lateMs
      jumped = last !== undefined && !isLate && !isCoalesced && distance(last, event) > farPixels
      last = event
    },
    landsAt: (press: Place) => jumped && last !== undefined && distance(last, press) <= 3,
  }
}

function distance(from: Place, to: Place): number {
  return Math.hypot(from.clientX - to.clientX, from.clientY - to.clientY)
}
