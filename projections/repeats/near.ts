import { hash } from 'node:crypto'
import type { Behavior } from '../../schemas/observations.ts'

/**
 * The summary of input for comparison with nearly equal ones, as of a replay whose numbers were changed a little. Candidates are
 * found by coarse digests, of which a changed copy has at least one in common, and then compared number by number.
 */
export interface Hands {
  /** Each is of eight numbers, rounded to cells of a grid of its own. */
  digests: string[]
  /** A digest of how fast and how evenly the hands move. null = too little was timed. */
  pace: string | null
  /** The logarithms of all numbers, two bytes each, in base64url. */
  numbers: string
}

// Sums of others, such as the number of all events, would say nothing more.
const members = {
  mouse: [
    'moves',
    'clicks',
    'coalesced',
    'duration_ms',
    'interval_mean',
    'interval_std',
    'straightness',
    'speed_std',
  ],
  keyboard: [
    'keys',
    'duration_ms',
    'interval_mean',
    'interval_std',
    'hold_mean',
    'hold_std',
    'rollovers',
    'corrections',
  ],
  touch: ['events', 'touches', 'duration_ms', 'interval_mean', 'interval_std', 'radius_std'],
  scroll: ['events', 'distance'],
  form: [
    'focuses',
    'changes',
    'time_to_submit_ms',
    ...(['duration_ms', 'interval_mean', 'interval_std'] as const),
  ],
} as const satisfies { [C in keyof Behavior]?: readonly (keyof Behavior[C])[] }

const compared: (readonly [channel: string, name: string])[] = Object.entries(members).flatMap(
  ([channel, names]) => names.map((name) => [channel, name] as const),
)
const paced = ['interval_mean', 'interval_std', 'hold_mean', 'hold_std', 'speed_std', 'radius_std']

// Fewer numbers may be nearly equal by chance.
const fewestNumbers = 6
const fewestTimed = 3
const numbersInDigest = 8
/** As many as the read model has columns for. */
const digestCount = 3
// As wide as a number grows by a third: noise of 3 % seldom leaves it.
const cell = 0.3
// The stored logarithms are multiples of this.
const unit = 0.001
// Two copies with noise of 3 % each are 6 % apart.
const farthest = 0.065
// One of so many numbers may be anything.
const oddOneIn = 12

/** null where there is too little to compare. */
export function handsOf(behavior: Behavior): Hands | null {
  const numbers = logarithmsOf(behavior)
  const present = numbers.flatMap((number, i) => (number > 0 ? [i] : []))
  if (present.length < fewestNumbers) return null
  const timed = present.filter((i) => paced.includes(compared[i]?.[1] ?? ''))
  return {
    digests: Array.from({ length: digestCount }, (_, n) =>
      digest(numbers, { chosen: chosen(present, n), shift: n / digestCount }),
    ),
    pace: timed.length < fewestTimed ? null : digest(numbers, { chosen: timed, shift: 0 }),
    numbers: packed(numbers),
  }
}

function logarithmsOf(behavior: Behavior): number[] {
  const channels: Record<string, Record<string, number | null>> = behavior
  return compared.map(([channel, name]) =>
    Math.log1p(100 * Math.max(0, channels[channel]?.[name] ?? 0)),
  )
}

// Where there are many numbers, each digest has others.
function chosen(present: number[], n: number): number[] {
  const from = Math.floor((n * present.length) / digestCount)
  const turned = [...present.slice(from), ...present.slice(0, from)]
  return turned.slice(0, numbersInDigest).sort((one, other) => one - other)
}

// Each number has a grid that begins elsewhere, by the golden ratio.
function digest(numbers: number[], { chosen, shift }: { chosen: number[]; shift: number }): string {
  const cells = chosen.map((i, n) => {
    const begin = (shift + n * 0.618) % 1
    return `${i}:${Math.floor((numbers[i] ?? 0) / cell + begin)}`
  })
  return hash('sha256', cells.join()).slice(0, 16)
}

function packed(numbers: number[]): string {
  const bytes = Buffer.alloc(2 * numbers.length)
  for (const [i, number] of numbers.entries())
    bytes.writeUInt16BE(Math.min(0xffff, Math.round(number / unit)), 2 * i)
  return bytes.toString('base64url')
}

/** Whether the numbers of two sessions are those of one, but for noise. */
export function areNear(one: Buffer, other: Buffer): boolean {
  if (one.length !== other.length) return false
  let [odd, present] = [0, 0]
  for (let at = 0; at < one.length; at += 2) {
    const [a, b] = [one.readUInt16BE(at), other.readUInt16BE(at)]
    if (a > 0 || b > 0) present += 1
    if (Math.abs(a - b) > farthest / unit) odd += 1
  }
  return odd * oddOneIn <= present
}

// Two copies whose numbers were each changed by up to 15 % are this far apart at most.
const farthestCopy = 0.31
// Equal to the rounding of what is stored.
const equal = 0.003
// Few numbers are close by chance more often.
const manyNumbers = 10
const closeShare = { many: 0.9, few: 0.95 }
// So many alike among 20 sessions people hardly ever have by chance.
const fewestCopies = { many: 2, few: 7 }

/**
 * Returns true where two sessions' input may be copies of one recording: nearly all numbers within 31 %, or half of them
 * equal. Two people are that alike now and then, so `copiesAmong` decides.
 */
export function areCopies(one: Buffer, other: Buffer): boolean {
  if (one.length !== other.length) return false
  let [present, close, large, equals] = [0, 0, 0, 0]
  for (let at = 0; at < one.length; at += 2) {
    const [a, b] = [one.readUInt16BE(at) * unit, other.readUInt16BE(at) * unit]
    if (a === 0 && b === 0) continue
    present += 1
    const most = Math.expm1(Math.max(a, b)) / 100
    const least = Math.expm1(Math.min(a, b)) / 100
    // A click more or less.
    const isSmall = most < 4.01
    if (Math.abs(a - b) <= farthestCopy || (isSmall && most - least < 1.01)) close += 1
    if (!isSmall) large += 1
    if (!isSmall && Math.abs(a - b) <= equal) equals += 1
  }
  const isChanged = equals >= 3 && equals >= large / 2
  return isChanged || close >= present * (present < manyNumbers ? closeShare.few : closeShare.many)
}

/** Counts the copies of the hands among up to 20 others; 0 unless they abound. */
export function copiesAmong(others: readonly Buffer[], hands: Buffer): number {
  const copies = others.filter((other) => areCopies(hands, other)).length
  let present = 0
  for (let at = 0; at < hands.length; at += 2) if (hands.readUInt16BE(at) > 0) present += 1
  return copies >= (present < manyNumbers ? fewestCopies.few : fewestCopies.many) ? copies : 0
}

/** Hands as they stand behind the hash of the behavior in a decision. */
export const handsText = ({ digests, pace, numbers }: Hands): string =>
  [...digests, pace ?? '', numbers].join('.')
