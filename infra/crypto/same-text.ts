import { timingSafeEqual } from 'node:crypto'

/** Compares received text with a secret in constant time. */
export function isSameText(secret: string, sent: string): boolean {
  // Compares byte lengths: strings of equal length may differ in bytes if `sent` is not ASCII.
  const [expected, actual] = [Buffer.from(secret), Buffer.from(sent)]
  return expected.length === actual.length && timingSafeEqual(expected, actual)
}
