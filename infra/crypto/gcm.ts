import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto'

const ivBytes = 12
const headerBytes = ivBytes + 16

export interface GcmKey {
  /** 32 bytes. */
  key: KeyObject | Buffer
  /** Bound but not stored: opening needs the same text. */
  context: string
}

/** `prefix` | iv 12 | tag 16 | ciphertext (AES-256-GCM). */
export function sealGcm(
  plaintext: Uint8Array,
  { key, context, iv, prefix }: GcmKey & { iv: Buffer; prefix: Buffer },
): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  cipher.setAAD(Buffer.from(context))
  const ciphertext = cipher.update(plaintext)
  // GCM has nothing left to give here: this makes the tag.
  cipher.final()
  return Buffer.concat([prefix, iv, cipher.getAuthTag(), ciphertext])
}

/** What `sealGcm` wrote behind its prefix; undefined for anything that this key did not seal in this context. */
export function openGcm(sealed: Buffer, { key, context }: GcmKey): Buffer | undefined {
  if (sealed.length < headerBytes) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, ivBytes))
  decipher.setAAD(Buffer.from(context))
  decipher.setAuthTag(sealed.subarray(ivBytes, headerBytes))
  try {
    const plaintext = decipher.update(sealed.subarray(headerBytes))
    decipher.final()
    return plaintext
  } catch {
    return undefined
  }
}
