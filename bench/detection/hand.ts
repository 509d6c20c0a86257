import type { SeededRandom } from '../../services/cli/simulate/generate/random.ts'

export interface Point {
  x: number
  y: number
}

/** Returns xdotool arguments that wait. */
export function pause(ms: number): string[] {
  return ['sleep', (ms / 1000).toFixed(3)]
}

/**
 * Returns xdotool arguments of a hand movement: slow at both ends, along a curved path with tremor, hesitation and
 * occasional overshoot. Following Fitts's law, distant and small targets take longer.
 */
export function moveTo(from: Point, to: Point, random: SeededRandom): string[] {
  const distance = Math.hypot(to.x - from.x, to.y - from.y)
  if (distance < 4) return []
  const beyond = { x: to.x + (to.x - from.x) * 0.06, y: to.y + (to.y - from.y) * 0.06 }
  if (distance < 150 || !random.chance(0.35)) return stroke(from, to, random)
  return [
    ...stroke(from, beyond, random),
    ...pause(random.between(60, 140)),
    ...stroke(beyond, to, random),
  ]
}

function stroke(from: Point, to: Point, random: SeededRandom): string[] {
  const distance = Math.hypot(to.x - from.x, to.y - from.y)
  const ms = (180 + 130 * Math.log2(distance / 30 + 1)) * random.between(0.8, 1.3)
  const bend = random.between(-0.14, 0.14) * distance
  const across = { x: (from.y - to.y) / (distance || 1), y: (to.x - from.x) / (distance || 1) }
  const words: string[] = []
  let tremor = 0
  for (let at = 0; at < ms; ) {
    const step = random.between(6, 19)
    at = Math.min(ms, at + step)
    const eased = minimumJerk(at / ms)
    tremor = tremor * 0.7 + random.between(-0.9, 0.9)
    const off = at < ms ? bend * Math.sin(Math.PI * eased ** 0.8) + tremor : 0
    const x = Math.round(from.x + (to.x - from.x) * eased + across.x * off)
    const y = Math.round(from.y + (to.y - from.y) * eased + across.y * off)
    words.push('mousemove', String(x), String(y), ...pause(step))
  }
  return words
}

/** Returns the share of the distance covered at a share of the time: minimum-jerk model (Flash and Hogan, 1985). */
function minimumJerk(t: number): number {
  return t ** 3 * (10 - 15 * t + 6 * t * t)
}

/** Returns xdotool arguments of a click at the pointer. */
export function press(random: SeededRandom): string[] {
  return [
    'mousedown',
    '1',
    ...pause(random.between(55, 130)),
    'mouseup',
    '1',
    ...pause(random.between(150, 420)),
  ]
}

/** Returns xdotool arguments of wheel steps; negative steps scroll up. */
export function wheel(steps: number, random: SeededRandom): string[] {
  const button = steps < 0 ? '4' : '5'
  return Array.from({ length: Math.abs(steps) }, () => [
    'click',
    button,
    ...pause(random.between(45, 190)),
  ]).flat()
}

/**
 * Returns xdotool arguments of irregular typing with rollovers. With `errs`, one key is wrong and corrected.
 */
export function typeText(
  text: string,
  random: SeededRandom,
  { errs }: { errs: boolean },
): string[] {
  const wrongAt = errs ? random.int(3, text.length - 3) : -1
  const words: string[] = []
  let held: string | undefined
  for (const [index, character] of [...text].entries()) {
    if (index === wrongAt) {
      if (held) words.push('keyup', held)
      held = undefined
      words.push(
        ...pressKey('x', random),
        ...pause(random.between(180, 420)),
        ...pressKey('BackSpace', random),
      )
    }
    const key = keyName(character)
    const rolls = held !== undefined && held !== key && random.chance(0.4)
    if (held && !rolls) words.push('keyup', held, ...pause(gap(character, random)))
    words.push('keydown', key, ...pause(random.between(30, 75)))
    if (held && rolls) words.push('keyup', held, ...pause(random.between(15, 60)))
    held = key
  }
  return held ? [...words, 'keyup', held, ...pause(random.between(150, 400))] : words
}

/** Returns the pause before a character, longer before a word. */
function gap(character: string, random: SeededRandom): number {
  return (
    random.between(25, 130) +
    (character === ' ' || random.chance(0.07) ? random.between(60, 260) : 0)
  )
}

/** Returns xdotool arguments that press a key, for example `Tab`. */
export function pressKey(name: string, random: SeededRandom): string[] {
  return [
    'keydown',
    name,
    ...pause(random.between(45, 110)),
    'keyup',
    name,
    ...pause(random.between(110, 330)),
  ]
}

function keyName(character: string): string {
  return { ' ': 'space', '.': 'period', '@': 'at', '-': 'minus' }[character] ?? character
}
