/** Returns a seeded generator of numbers from 0 to 1 (mulberry32). */
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

/** Returns xdotool arguments of a human-like pointer movement: curved, faster in the middle, slightly unsteady. */
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

/** Returns xdotool arguments of typing with varying hold times, rollovers and pauses. */
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

/** Returns true if the key is pressed before the last is released: every third, except repeated or shifted ones. */
function isFluent(before: string, character: string, at: number): boolean {
  return at % 3 === 0 && before !== character && /^[a-z. ]{2}$/.test(before + character)
}

/** Returns xdotool arguments that press a key, for example `Tab`. */
export function pressKey(name: string, next: () => number): string[] {
  return ['keydown', name, ...pause(50 + next() * 60), 'keyup', name, ...pause(120 + next() * 200)]
}

/** Returns xdotool arguments that wait. */
export function pause(ms: number): string[] {
  return ['sleep', (ms / 1000).toFixed(3)]
}

function keyName(character: string): string {
  return { ' ': 'space', '.': 'period', '@': 'at', '-': 'minus' }[character] ?? character
}
