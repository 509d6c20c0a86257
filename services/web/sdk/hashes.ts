import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { jsonOf } from './realm.ts'

/** The first 128 bits of SHA-256, hex: short enough to send, long enough never to collide by chance. */
export function hashBytes(bytes: Uint8Array): string {
  return bytesToHex(sha256(bytes)).slice(0, 32)
}

export function hashJson(value: unknown): string {
  return hashBytes(utf8ToBytes(jsonOf(value) ?? ''))
}

/** All of SHA-256, lower-case hex, of the text in UTF-8. */
export function sha256Of(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)))
}
