import { createCipheriv, createDecipheriv, hkdfSync, type KeyObject } from 'node:crypto'
import type { Random } from '../ids.ts'
import type { Keyring } from './keyring.ts'

export const keyIdBytes = 4

export interface SealOptions {
  keyring: Keyring
  purpose: string
  /** Additional authenticated data (AAD). It isn't stored, and `open` needs the same text. */
  context?: string
}

/** Encrypts under the current master key (AES-256-GCM): key id 4 bytes | iv 12 | tag 16 | ciphertext. */
export function seal(
  plaintext: Uint8Array,
  { keyring, purpose, context = '', random }: SealOptions & { random: Random },
): Buffer {
  const { id, secretKey } = keyring.current
  const [iv, prefix] = [random(12), Buffer.from(id, 'hex')]
  return sealGcm(plaintext, { key: secretKey(purpose), context, iv, prefix })
}

/** Decrypts the result of `seal`; undefined if no key of the keyring sealed it for this purpose and context. */
export function open(
  sealed: Buffer,
  { keyring, purpose, context = '' }: SealOptions,
): Buffer | undefined {
  const key = keyring.byId(sealed.toString('hex', 0, keyIdBytes))
  return key && openGcm(sealed.subarray(keyIdBytes), { key: key.secretKey(purpose), context })
}

export const dataKeyBytes = 32

/**
 * A key for data that must be erasable (crypto-shredding): deleting the key makes everything sealed under it
 * unreadable, including copies.
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
/** Bytes that encryption adds, without a prefix. */
export const headerBytes = ivBytes + 16

export interface GcmKey {
  key: KeyObject | Buffer
  /** Additional authenticated data (AAD). It isn't stored, and `openGcm` needs the same. Bytes are faster than text. */
  context: string | Buffer
}

const bytesOf = (context: string | Buffer) =>
  typeof context === 'string' ? Buffer.from(context) : context

/** Encrypts with AES-256-GCM: `prefix` | iv 12 bytes | tag 16 | ciphertext. */
export function sealGcm(
  plaintext: Uint8Array,
  { key, context, iv, prefix }: GcmKey & { iv: Buffer; prefix: Buffer },
): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  cipher.setAAD(bytesOf(context))
  const ciphertext = cipher.update(plaintext)
  // With GCM this returns no bytes, but computes the tag.
  cipher.final()
  return Buffer.concat([prefix, iv, cipher.getAuthTag(), ciphertext])
}

/** Decrypts `sealed` (without the prefix); undefined if this key did not seal it in this context. */
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
