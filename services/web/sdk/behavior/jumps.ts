import type { Listen } from './channel.ts'

const farPixels = 200
// What comes later than this, in milliseconds, may have lost what was between.
const lateMs = 100

interface Place {
  clientX: number
  clientY: number
}

/** Tells whether a single event brought the pointer far to where it is pressed. */
export function createJumps(listen: Listen) {
  let last: Place | undefined
  let jumped = false

  function forget(): void {
    last = undefined
    jumped = false
  }
  // Nobody sees the way that a pointer takes outside of the page or inside of a frame.
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

function distance(one: Place, other: Place): number {
  return Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY)
}
