import { timingSafeEqual } from 'node:crypto'

/** Returns true if the texts are equal, in constant time for texts of the same length. */
export function constantTimeEqual(secret: string, sent: string): boolean {
  // Compare byte lengths: strings of equal length may differ in bytes if `sent` is not ASCII.
  const [expected, actual] = [Buffer.from(secret), Buffer.from(sent)]
  return expected.length === actual.length && timingSafeEqual(expected, actual)
}
