import { hash } from 'node:crypto'
import type { Behavior } from '../../schemas/observations.ts'

/**
 * Profile of a session's input, for finding replays whose numbers were changed slightly. As in locality-sensitive
 * hashing, it has three coarse digests, and a changed copy shares at least one of them with its original. Sessions that
 * share a digest are then compared number by number.
 */
export interface InputProfile {
  /** Digests of up to eight numbers each, rounded to a grid. */
  digests: string[]
  /** Digest of the speed and regularity of input; null if too few intervals were measured. */
  pace: string | null
  /** Logarithms of all numbers, two bytes each, in base64url. */
  numbers: string
}

// Excludes members that are sums of others, such as the number of all events.
const comparedMembers = {
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

const compared: (readonly [channel: string, member: string])[] = Object.entries(
  comparedMembers,
).flatMap(([channel, members]) => members.map((member) => [channel, member] as const))
const timingMembers = ['interval_mean', 'interval_std', 'hold_mean', 'hold_std']
const paceMembers = [...timingMembers, 'speed_std', 'radius_std']

// Fewer numbers than this can be nearly equal by chance.
const minNumbers = 6
const minPaceNumbers = 3
const numbersPerDigest = 8
// The read model has a column for each digest.
const digestCount = 3
// The end of a cell is a third larger than its start, so noise of 3% seldom changes the cell.
const cellWidth = 0.3
// Stored logarithms are multiples of this.
const unit = 0.001
// Two copies with 3% noise each differ by up to 6%.
const maxNoise = 0.065
const numbersPerOutlier = 12

/** Returns null if there are too few numbers to compare. */
export function inputProfileOf(behavior: Behavior): InputProfile | null {
  const numbers = logarithmsOf(behavior)
  const present = numbers.flatMap((number, i) => (number > 0 ? [i] : []))
  if (present.length < minNumbers) return null
  const timed = present.filter((i) => paceMembers.includes(compared[i]?.[1] ?? ''))
  return {
    digests: Array.from({ length: digestCount }, (_, n) =>
      digest(numbers, positionsIn(present, n), n / digestCount),
    ),
    pace: timed.length < minPaceNumbers ? null : digest(numbers, timed, 0),
    numbers: pack(numbers),
  }
}

function logarithmsOf(behavior: Behavior): number[] {
  const channels: Record<string, Record<string, number | null>> = behavior
  return compared.map(([channel, member]) =>
    Math.log1p(100 * Math.max(0, channels[channel]?.[member] ?? 0)),
  )
}

// Returns the positions of the numbers in the n-th digest. With many numbers, each digest starts at a different one.
function positionsIn(present: number[], n: number): number[] {
  const start = Math.floor((n * present.length) / digestCount)
  const rotated = [...present.slice(start), ...present.slice(0, start)]
  return rotated.slice(0, numbersPerDigest).sort((a, b) => a - b)
}

function digest(numbers: number[], positions: number[], shift: number): string {
  const cells = positions.map((position, n) => {
    // The golden ratio spreads the offsets, so that numbers do not reach the borders of their cells together.
    const offset = (shift + n * 0.618) % 1
    return `${position}:${Math.floor((numbers[position] ?? 0) / cellWidth + offset)}`
  })
  return hash('sha256', cells.join()).slice(0, 16)
}

function pack(numbers: number[]): string {
  const bytes = Buffer.alloc(2 * numbers.length)
  for (const [i, number] of numbers.entries())
    bytes.writeUInt16BE(Math.min(0xffff, Math.round(number / unit)), 2 * i)
  return bytes.toString('base64url')
}

/** Returns true if two sessions have the same numbers except for noise and one outlier in twelve. */
export function areNearDuplicates(first: Buffer, second: Buffer): boolean {
  if (first.length !== second.length) return false
  let [outliers, present] = [0, 0]
  for (let at = 0; at < first.length; at += 2) {
    const [a, b] = [first.readUInt16BE(at), second.readUInt16BE(at)]
    if (a > 0 || b > 0) present += 1
    if (Math.abs(a - b) > maxNoise / unit) outliers += 1
  }
  return outliers * numbersPerOutlier <= present
}

// Logarithms of two copies whose numbers were changed by up to 15% each differ by at most this.
const maxCopyDistance = 0.31
// Allows for rounding of the stored logarithms.
const equalDistance = 0.003
// With fewer numbers than this, a larger share must be close, and more copies are required.
const manyNumbers = 10
const minCloseShare = { many: 0.9, few: 0.95 }
// Among 20 sessions of people, this many are seldom alike by chance.
const minCopies = { many: 2, few: 7 }

/**
 * Returns true if the input of two sessions may come from the same recording: nearly all numbers are within 31%, or
 * half of the large ones are equal. Two people can be that similar, so one match proves nothing; see `countCopies`.
 */
export function areCopies(first: Buffer, second: Buffer): boolean {
  if (first.length !== second.length) return false
  let [present, close, large, equal] = [0, 0, 0, 0]
  for (let at = 0; at < first.length; at += 2) {
    const [a, b] = [first.readUInt16BE(at) * unit, second.readUInt16BE(at) * unit]
    if (a === 0 && b === 0) continue
    present += 1
    const max = Math.expm1(Math.max(a, b)) / 100
    const min = Math.expm1(Math.min(a, b)) / 100
    const isSmall = max < 4.01
    // Small counts may differ by one, for example by a click.
    if (Math.abs(a - b) <= maxCopyDistance || (isSmall && max - min < 1.01)) close += 1
    if (!isSmall) large += 1
    if (!isSmall && Math.abs(a - b) <= equalDistance) equal += 1
  }
  const isHalfEqual = equal >= 3 && equal >= large / 2
  const { few, many } = minCloseShare
  return isHalfEqual || close >= present * (present < manyNumbers ? few : many)
}

/** Counts the profiles, of up to 20, that may be copies. Returns 0 if so few can be alike by chance. */
export function countCopies(others: readonly Buffer[], profile: Buffer): number {
  const copies = others.filter((other) => areCopies(profile, other)).length
  let present = 0
  for (let at = 0; at < profile.length; at += 2) if (profile.readUInt16BE(at) > 0) present += 1
  return copies >= (present < manyNumbers ? minCopies.few : minCopies.many) ? copies : 0
}

/** Serializes the profile as it follows the hash in a decision's `behavior_hash`. */
export const serializeInputProfile = ({ digests, pace, numbers }: InputProfile): string =>
  [...digests, pace ?? '', numbers].join('.')
