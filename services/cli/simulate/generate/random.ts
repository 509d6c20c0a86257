import { createHash } from 'node:crypto'

/** Deterministic random source; never use it for secrets. */
export type SeededRandom = ReturnType<typeof createSeededRandom>

/**
 * Creates a random source whose values depend only on the seed and the path. Each session has its own path, so its values
 * don't depend on the order in which sessions run.
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
    /** Returns a number from min to max, rounded to 2 decimals to keep its JSON short. */
    between: (min: number, max: number) => Math.round((min + next() * (max - min)) * 100) / 100,
    chance: (probability: number) => next() < probability,
    pick: <T>(options: readonly T[]): T => weighted(options.map((option) => [option, 1] as const)),
    weighted,
    /** Returns hexadecimal digits, in place of a digest that a client would report. */
    hash: (length = 16) => Array.from({ length }, () => int(0, 15).toString(16)).join(''),
  }
}

function pickWeighted<T>(options: readonly (readonly [T, number])[], at: number): T {
  let remaining = at * options.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [option, weight] of options) {
    remaining -= weight
    if (remaining < 0) return option
  }
  throw new Error('there is no option with a weight above 0')
}

// xoshiro128** 1.1 by Blackman and Vigna (https://prng.di.unimi.it/xoshiro128starstar.c), scaled to [0, 1).
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
