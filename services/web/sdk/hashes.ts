import { type Bytes, utf8 } from '../../../infra/wire/collect/protocol.ts'
import { jsonOf } from './realm.ts'
import { digestOf } from './web-crypto.ts'

/** Returns the first 128 bits of the SHA-256 as hex, which are enough to rule out chance collisions. */
export async function hashBytes(bytes: Bytes): Promise<string> {
  return (await hex(bytes)).slice(0, 32)
}

export function hashJson(value: unknown): Promise<string> {
  return hashBytes(utf8(jsonOf(value) ?? ''))
}

/** Returns the hash of the result of `read`, or null if it throws. */
export async function hashOrNull(read: () => unknown): Promise<string | null> {
  try {
    return await hashJson(read())
  } catch {
    return null
  }
}

/** Returns the SHA-256 of the UTF-8 text as lower-case hex. */
export function sha256Of(text: string): Promise<string> {
  return hex(utf8(text))
}

const digits = '0123456789abcdef'

async function hex(bytes: Bytes): Promise<string> {
  const hash = await digestOf(bytes)
  let text = ''
  for (const byte of hash) text += `${digits[byte >> 4]}${digits[byte & 15]}`
  return text
}
