import { createHash } from 'node:crypto'

/** A repeatable source of values. Not for secrets. */
export type SeededRandom = ReturnType<typeof createSeededRandom>

/**
 * Values that follow from the seed and the path alone, on every machine: each session has its own sequence, in whatever
 * order they run.
 */
export function createSeededRandom(seed: string, ...path: (string | number)[]) {
  const digest = createHash('sha256')
    .update([seed, ...path].join('\0'))
    .digest()
  const next = xoshiro128(digest)
  const int = (min: number, max: number) => min + Math.floor(next() * (max - min + 1))
  const weighted = <T>(options: readonly (readonly [T, number])[]): T =>
    pickWeighted(options, next())
  return {
    next,
    int,
    /** A number between the two, rounded to 2 decimals so that its JSON is short. */
    between: (min: number, max: number) => Math.round((min + next() * (max - min)) * 100) / 100,
    chance: (probability: number) => next() < probability,
    pick: <T>(options: readonly T[]): T => weighted(options.map((option) => [option, 1] as const)),
    weighted,
    /** A hexadecimal digest as a client would report it. */
    hash: (length = 16) => Array.from({ length }, () => int(0, 15).toString(16)).join(''),
  }
}

function pickWeighted<T>(options: readonly (readonly [T, number])[], at: number): T {
  let left = at * options.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [option, weight] of options) {
    left -= weight
    if (left < 0) return option
  }
  throw new Error('there is no option with a weight above 0')
}

// xoshiro128** 1.1 by Blackman and Vigna (https://prng.di.unimi.it/xoshiro128starstar.c), as a number below 1.
function xoshiro128(seed: Buffer): () => number {
  let [a, b, c, d] = [
    seed.readInt32LE(0),
    seed.readInt32LE(4),
    seed.readInt32LE(8),
    seed.readInt32LE(12),
  ]
  return () => {
    const result = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9)
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = rotateLeft(d, 11)
    return (result >>> 0) / 2 ** 32
  }
}

function rotateLeft(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits))
}
