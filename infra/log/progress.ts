import { type Position, placeName } from './port.ts'

interface Progress {
  stored: Position[]
  firsts: Position[]
  ends: Position[]
}

/**
 * Returns how far a consumer has come in each partition of `ends`. `first` is the first record that still exists, and
 * `next` the one to read next: where the consumer stored that it goes on, or `first` where that is later.
 */
export function progressOf({ stored, firsts, ends }: Progress) {
  const [storedAt, firstAt] = [offsetsOf(stored), offsetsOf(firsts)]
  return ends.map(({ offset: end, ...place }) => {
    const first = firstAt.get(placeName(place)) ?? 0
    return { place, first, next: Math.max(first, storedAt.get(placeName(place)) ?? 0), end }
  })
}

const offsetsOf = (positions: Position[]) =>
  new Map(positions.map((at) => [placeName(at), at.offset]))
