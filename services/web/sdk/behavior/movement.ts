interface Point {
  x: number
  y: number
  at: number
}

// A pause of this length ends a movement.
const pauseMs = 120
// Shorter movements say nothing about straightness.
const minimum = { distance: 30, points: 4 }

/**
 * Splits a stream of positions into movements and measures them without storing positions. `onPath` is called with the
 * path length of a finished movement divided by its distance, which is 1 for a straight line.
 */
export function createMovement({
  onSpeed,
  onPath,
}: {
  onSpeed(speed: number): void
  onPath(pathRatio: number): void
}) {
  let start: Point | undefined
  let last: Point | undefined
  let path = 0
  let points = 0

  function end(): void {
    if (start && last && points >= minimum.points) {
      const distance = Math.hypot(last.x - start.x, last.y - start.y)
      if (distance >= minimum.distance) onPath(path / distance)
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
