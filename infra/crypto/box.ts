import type { Random } from '../ids.ts'
import { openGcm, sealGcm } from './gcm.ts'
import type { Keyring } from './keyring.ts'

// Layout: key id 4 bytes | iv 12 | tag 16 | ciphertext (AES-256-GCM).
const keyIdBytes = 4

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
  const { id, secretKey } = keyring.current
  const [iv, prefix] = [random(12), Buffer.from(id, 'hex')]
  return sealGcm(plaintext, { key: secretKey(purpose), context, iv, prefix })
}

/** The plaintext, or undefined for anything that was not sealed by one of our keys for this purpose and context. */
export function open(sealed: Buffer, { keyring, purpose, context = '' }: SealOptions): Buffer | undefined {
  const key = keyring.byId(sealed.toString('hex', 0, keyIdBytes))
  return key && openGcm(sealed.subarray(keyIdBytes), { key: key.secretKey(purpose), context })
}
