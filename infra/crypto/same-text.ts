import { timingSafeEqual } from 'node:crypto'

/** Compares what somebody sent with a secret, in the same time wherever they differ. */
export function isSameText(secret: string, sent: string): boolean {
  // By their bytes: texts of one length differ in bytes where somebody sends more than ASCII.
  const [own, other] = [Buffer.from(secret), Buffer.from(sent)]
  return own.length === other.length && timingSafeEqual(own, other)
}
