import type { Behavior } from '../../../../schemas/observations.ts'
import {
  createChannel,
  createOffClock,
  createStats,
  type Listen,
  round,
  type Tracker,
} from './channel.ts'
import { createJumps } from './jumps.ts'
import { createMovement } from './movement.ts'
import { hasNoPressure, trackPresses } from './presses.ts'

export function trackMouse(listen: Listen): Tracker<Behavior['mouse']> {
  const channel = createChannel(zeroCounts)
  const isOffClock = createOffClock()
  const position: { last?: { x: number; y: number } } = {}
  let speeds = createStats()
  let pathRatios = createStats()
  const movement = createMovement({
    onSpeed: (speed) => speeds.add(speed),
    onPath: (pathRatio) => pathRatios.add(pathRatio),
  })
  const jumps = createJumps(listen)
  const isAssistive = trackPresses(listen, {
    counts: () => channel.counts,
    onButton(event) {
      if (isOffClock(event)) channel.counts.off_clock++
      if (event.type === 'pointerdown' && jumps.landsAt(event)) channel.counts.jumps++
    },
  })

  function countMove(event: PointerEvent): void {
    const { counts } = channel
    if (screenEqualsClient(event)) counts.screen_equals_client++
    if (isFrameless(event)) counts.frameless++
    const coalesced = coalescedCount(event)
    if (coalesced === 1) counts.single++
    if (coalesced > 1) counts.coalesced++
    if (isOffClock(event)) counts.off_clock++
    if (hasNoPressure(event)) counts.pressureless++
    jumps.move(event, coalesced > 1)
  }

  listen(['pointermove'], (event) => {
    if (event.pointerType === 'touch') return
    channel.record(event)
    channel.counts.moves++
    if (event.isTrusted) countMove(event)
    movement.add({ x: event.clientX, y: event.clientY, at: event.timeStamp })
    position.last = { x: event.clientX, y: event.clientY }
  })
  listen(['click'], (event) => {
    const { counts } = channel
    if (event.isTrusted) counts.activations++
    if (!isPointerClick(event) || isAssistive()) return
    channel.record(event)
    counts.clicks++
    if (event.isTrusted && !isAt(position.last, event)) counts.clicks_without_move++
    if (isExactCenter(event)) counts.clicks_exact_center++
    movement.end()
    position.last = { x: event.clientX, y: event.clientY }
  })

  return {
    drain() {
      const summary = {
        ...channel.drain(),
        straightness: pathRatios.mean(),
        speed_std: speeds.deviation(),
      }
      speeds = createStats()
      pathRatios = createStats()
      return summary
    },
  }
}

function zeroCounts() {
  const moves = { moves: 0, coalesced: 0, single: 0, jumps: 0 }
  const clicks = { clicks: 0, activations: 0, clicks_without_move: 0, clicks_exact_center: 0 }
  const presses = { presses: 0, instant_presses: 0, pressureless: 0 }
  return { ...moves, ...clicks, ...presses, screen_equals_client: 0, frameless: 0, off_clock: 0 }
}

// Returns true for clicks by mouse or pen. Clicks by keyboard or through a label have detail 0 or no pointer type.
function isPointerClick(event: MouseEvent): boolean {
  const pointerType = 'pointerType' in event ? event.pointerType : 'mouse'
  return pointerType !== 'touch' && (!event.isTrusted || (event.detail > 0 && pointerType !== ''))
}

function isAt(
  last: { x: number; y: number } | undefined,
  { clientX, clientY }: MouseEvent,
): boolean {
  return last !== undefined && Math.hypot(last.x - clientX, last.y - clientY) <= 3
}

function isExactCenter(event: MouseEvent): boolean {
  const target = event.composedPath()[0]
  if (!(target instanceof Element)) return false
  const box = target.getBoundingClientRect()
  const dx = Math.abs(box.left + box.width / 2 - event.clientX)
  const dy = Math.abs(box.top + box.height / 2 - event.clientY)
  return round(dx) <= 0.75 && round(dy) <= 0.75
}

// In injected events, the screen position is often the same as the position in the page.
function screenEqualsClient(event: MouseEvent): boolean {
  const offset = window.screenY > 0 || window.outerHeight - window.innerHeight >= 20
  return offset && event.screenX === event.clientX && event.screenY === event.clientY
}

// Scripts that correct the screen position often ignore the height of the tab strip and the address bar.
function isFrameless({ screenX, screenY, clientX, clientY }: MouseEvent): boolean {
  const bars = window.outerHeight - window.innerHeight
  return bars >= 60 && screenX - clientX === window.screenX && screenY - clientY === window.screenY
}

// Returns the number of coalesced moves; 0 if the browser does not report it, as on plain HTTP pages. A real pointer
// reports several times per frame, while a program waits for each event.
function coalescedCount(event: PointerEvent): number {
  return typeof event.getCoalescedEvents === 'function' ? event.getCoalescedEvents().length : 0
}
