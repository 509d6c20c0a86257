/** Numbers from 0 to 1 that a seed repeats (mulberry32). */
export function createNumbers(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

export interface Point {
  x: number
  y: number
}

/** xdotool words that move the pointer as a hand does: a bent path, faster in the middle, a little unsteady. */
export function movePointer(from: Point, to: Point, next: () => number): string[] {
  const steps = 24 + Math.floor(next() * 16)
  const bend = { x: (next() - 0.5) * 160, y: (next() - 0.5) * 160 }
  return Array.from({ length: steps }, (_, i) => {
    const t = (i + 1) / steps
    const eased = t * t * (3 - 2 * t)
    const arc = Math.sin(Math.PI * eased)
    const shake = i + 1 < steps ? (next() - 0.5) * 3 : 0
    const x = Math.round(from.x + (to.x - from.x) * eased + bend.x * arc + shake)
    const y = Math.round(from.y + (to.y - from.y) * eased + bend.y * arc + shake)
    return ['mousemove', String(x), String(y), ...pause(8 + next() * 14)]
  }).flat()
}

/** xdotool words that type: keys held for different times, some until the next is down, with uneven pauses. */
export function typeText(text: string, next: () => number): string[] {
  const letters = [...text]
  return letters.flatMap((character, i) => {
    const before = letters[i - 1]
    const overlaps = before !== undefined && isFluent(before, character, i)
    const releases = overlaps ? [...pause(15 + next() * 25), 'keyup', keyName(before)] : []
    const follows = letters[i + 1]
    const held = follows !== undefined && isFluent(character, follows, i + 1)
    const down = ['keydown', keyName(character), ...releases, ...pause(45 + next() * 70)]
    return held ? down : [...down, 'keyup', keyName(character), ...pause(60 + next() * 160)]
  })
}

/** Every third key is pressed before the last is released, but none twice at once, and none with Shift. */
function isFluent(before: string, character: string, at: number): boolean {
  return at % 3 === 0 && before !== character && /^[a-z. ]{2}$/.test(before + character)
}

/** xdotool words that press one key, for example `Tab`. */
export function pressKey(name: string, next: () => number): string[] {
  return ['keydown', name, ...pause(50 + next() * 60), 'keyup', name, ...pause(120 + next() * 200)]
}

/** xdotool words that wait. */
export function pause(ms: number): string[] {
  return ['sleep', (ms / 1000).toFixed(3)]
}

function keyName(character: string): string {
  return { ' ': 'space', '.': 'period', '@': 'at', '-': 'minus' }[character] ?? character
}
