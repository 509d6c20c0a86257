import { createCipheriv, createDecipheriv, hkdfSync, type KeyObject } from 'node:crypto'
import type { Random } from '../ids.ts'
import type { Keyring } from './keyring.ts'

export const keyIdBytes = 4

export interface SealOptions {
  keyring: Keyring
  purpose: string
  /** Bound but not stored: opening needs the same text. */
  context?: string
}

/** key id 4 bytes | iv 12 | tag 16 | ciphertext (AES-256-GCM), under the current master key. */
export function seal(
  plaintext: Uint8Array,
  { keyring, purpose, context = '', random }: SealOptions & { random: Random },
): Buffer {
  const { id, secretKey } = keyring.current
  const [iv, prefix] = [random(12), Buffer.from(id, 'hex')]
  return sealGcm(plaintext, { key: secretKey(purpose), context, iv, prefix })
}

/** undefined for anything that was not sealed by one of our keys for this purpose and context. */
export function open(
  sealed: Buffer,
  { keyring, purpose, context = '' }: SealOptions,
): Buffer | undefined {
  const key = keyring.byId(sealed.toString('hex', 0, keyIdBytes))
  return key && openGcm(sealed.subarray(keyIdBytes), { key: key.secretKey(purpose), context })
}

export const dataKeyBytes = 32

/**
 * A key for one thing that must be forgotten one day. Deleting it deletes whatever was sealed under it, wherever
 * copies are.
 */
export interface DataKey {
  seal(plaintext: Uint8Array, options: { context: string; random: Random }): Buffer
  open(sealed: Buffer, options: { context: string }): Buffer | undefined
}

export function createDataKey(secret: Buffer): DataKey {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'tidegate:data:seal', 32))
  return {
    seal: (plaintext, { context, random }) =>
      sealGcm(plaintext, { key, context, iv: random(12), prefix: Buffer.alloc(0) }),
    open: (sealed, { context }) => openGcm(sealed, { key, context }),
  }
}

const ivBytes = 12
/** How much longer an encrypted text is, without a prefix. */
export const headerBytes = ivBytes + 16

export interface GcmKey {
  key: KeyObject | Buffer
  /** Bound but not stored: opening needs the same text. Its bytes where it is used often. */
  context: string | Buffer
}

const bytesOf = (context: string | Buffer) =>
  typeof context === 'string' ? Buffer.from(context) : context

/** `prefix` | iv 12 | tag 16 | ciphertext. */
export function sealGcm(
  plaintext: Uint8Array,
  { key, context, iv, prefix }: GcmKey & { iv: Buffer; prefix: Buffer },
): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  cipher.setAAD(bytesOf(context))
  const ciphertext = cipher.update(plaintext)
  // GCM has nothing left to give here: this makes the tag.
  cipher.final()
  return Buffer.concat([prefix, iv, cipher.getAuthTag(), ciphertext])
}

/** `sealed` is without the prefix. undefined for anything that this key did not seal in this context. */
export function openGcm(sealed: Buffer, { key, context }: GcmKey): Buffer | undefined {
  if (sealed.length < headerBytes) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, ivBytes))
  decipher.setAAD(bytesOf(context))
  decipher.setAuthTag(sealed.subarray(ivBytes, headerBytes))
  try {
    const plaintext = decipher.update(sealed.subarray(headerBytes))
    decipher.final()
    return plaintext
  } catch {
    return undefined
  }
}
