import type { Behavior } from '../../../../schemas/observations.ts'
import { createChannel, createSpread, type Listen, round, type Tracker } from './channel.ts'

type Mouse = Behavior['mouse']

export function trackMouse(listen: Listen): Tracker<Mouse> {
  const channel = createChannel()
  const position: { last?: { x: number; y: number } } = {}
  let counts = noCounts()
  let speeds = createSpread()
  let lines = createSpread()
  const movement = createMovement({ onSpeed: (s) => speeds.add(s), onLine: (line) => lines.add(line) })

  listen(['pointermove'], (event) => {
    if (event.pointerType === 'touch') return
    channel.record(event)
    counts.moves++
    if (event.isTrusted && screenEqualsClient(event)) counts.screen_equals_client++
    movement.add({ x: event.clientX, y: event.clientY, at: event.timeStamp })
    position.last = { x: event.clientX, y: event.clientY }
  })
  listen(['click'], (event) => {
    if (event.isTrusted) counts.activations++
    if (!isPointerClick(event)) return
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
        ...counts,
        straightness: lines.mean(),
        speed_std: speeds.deviation(),
      }
      counts = noCounts()
      speeds = createSpread()
      lines = createSpread()
      return summary
    },
  }
}

function noCounts() {
  return {
    moves: 0,
    clicks: 0,
    activations: 0,
    clicks_without_move: 0,
    clicks_exact_center: 0,
    screen_equals_client: 0,
  }
}

/** A click by a key or a label has detail 0 or no pointer type; a finger needs no movement before it. */
function isPointerClick(event: MouseEvent): boolean {
  const pointerType = 'pointerType' in event ? event.pointerType : 'mouse'
  return pointerType !== 'touch' && (!event.isTrusted || (event.detail > 0 && pointerType !== ''))
}

function isAt(last: { x: number; y: number } | undefined, { clientX, clientY }: MouseEvent): boolean {
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

/** Events injected below the window system often repeat the page position as the screen position. */
function screenEqualsClient(event: MouseEvent): boolean {
  const offset = window.screenY > 0 || window.outerHeight - window.innerHeight >= 20
  return offset && event.screenX === event.clientX && event.screenY === event.clientY
}

interface Point {
  x: number
  y: number
  at: number
}

interface MovementOptions {
  onSpeed(speed: number): void
  /** Path length over distance of a finished movement; 1 = a straight line. */
  onLine(straightness: number): void
}

/** A pause this long, in milliseconds, ends a movement. */
const pauseMs = 120
/** Shorter or coarser movements say nothing about their line. */
const shortest = { distance: 30, points: 4 }

/** Cuts a stream of positions into movements and measures each as it goes; no position is kept. */
function createMovement({ onSpeed, onLine }: MovementOptions) {
  let start: Point | undefined
  let last: Point | undefined
  let path = 0
  let points = 0

  function end(): void {
    if (start && last && points >= shortest.points) {
      const distance = Math.hypot(last.x - start.x, last.y - start.y)
      if (distance >= shortest.distance) onLine(path / distance)
    }
    start = last = undefined
    path = points = 0
  }

  function add(point: Point): void {
    if (last && point.at - last.at > pauseMs) end()
    if (last) {
      const step = Math.hypot(point.x - last.x, point.y - last.y)
      path += step
      if (point.at > last.at) onSpeed(step / (point.at - last.at))
    }
    start ??= point
    last = point
    points++
  }

  return { add, end }
}
