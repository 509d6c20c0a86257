import { type Position, placeName } from './port.ts'

/**
 * Returns the next record that a consumer can read, for each partition of `firsts`: where it stored that it goes on, or
 * the first record that still exists where it stored nothing or an earlier one.
 */
export function progressOf(stored: Position[], firsts: Position[]): Position[] {
  const next = new Map(stored.map((at) => [placeName(at), at.offset]))
  return firsts.map((first) => ({
    ...first,
    offset: Math.max(first.offset, next.get(placeName(first)) ?? 0),
  }))
}
