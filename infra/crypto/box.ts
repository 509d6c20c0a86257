import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { Random } from '../ids.ts'
import type { Keyring } from './keyring.ts'

// Layout: key id 4 bytes | iv 12 | tag 16 | ciphertext (AES-256-GCM).
const headerBytes = 4 + 12 + 16

export interface SealOptions {
  keyring: Keyring
  purpose: string
  /** Bound but not stored: opening needs the same text. */
  context?: string
}

/** Encrypts under the current master key, for one purpose. */
export function seal(
  plaintext: Uint8Array,
  { keyring, purpose, context = '', random }: SealOptions & { random: Random },
): Buffer {
  const iv = random(12)
  const cipher = createCipheriv('aes-256-gcm', keyring.current.secretKey(purpose), iv)
  cipher.setAAD(Buffer.from(context))
  const ciphertext = cipher.update(plaintext)
  // GCM has nothing left to give here: this makes the tag.
  cipher.final()
  return Buffer.concat([Buffer.from(keyring.current.id, 'hex'), iv, cipher.getAuthTag(), ciphertext])
}

/** The plaintext, or undefined for anything that was not sealed by one of our keys for this purpose and context. */
export function open(sealed: Buffer, { keyring, purpose, context = '' }: SealOptions): Buffer | undefined {
  if (sealed.length < headerBytes) return undefined
  const key = keyring.byId(sealed.toString('hex', 0, 4))
  if (!key) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key.secretKey(purpose), sealed.subarray(4, 16))
  decipher.setAAD(Buffer.from(context))
  decipher.setAuthTag(sealed.subarray(16, 32))
  try {
    const plaintext = decipher.update(sealed.subarray(headerBytes))
    decipher.final()
    return plaintext
  } catch {
    return undefined
  }
}
