import { createHash } from 'node:crypto'
import { base32Characters } from '../ids.ts'

/** So many characters of lower-case base32 that follow from the text: what ends with them shows its typos. */
export function checksum(stem: string, length: number): string {
  return base32Characters(createHash('sha256').update(stem).digest().subarray(0, length))
}
