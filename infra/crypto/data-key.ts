import { hkdfSync } from 'node:crypto'
import type { Random } from '../ids.ts'
import { counterRandom } from './counter-random.ts'
import { openGcm, sealGcm } from './gcm.ts'

export const dataKeyBytes = 32

/**
 * A key for one thing that must be forgotten one day: deleting it deletes whatever was sealed under it, wherever copies
 * are, and whatever was drawn from it.
 */
export interface DataKey {
  /** iv 12 | tag 16 | ciphertext, AES-256-GCM; bound to the context. */
  seal(plaintext: Uint8Array, options: { context: string; random: Random }): Buffer
  /** undefined for what this key did not seal in this context. */
  open(sealed: Buffer, options: { context: string }): Buffer | undefined
  /** Bytes for one purpose; the same ones each time, so that who repeats a step makes the same secrets. */
  random(purpose: string): Random
}

export function createDataKey(secret: Buffer): DataKey {
  const derive = (purpose: string) =>
    Buffer.from(hkdfSync('sha256', secret, '', `tidegate:data:${purpose}`, 32))
  const key = derive('seal')
  return {
    seal: (plaintext, { context, random }) =>
      sealGcm(plaintext, { key, context, iv: random(12), prefix: Buffer.alloc(0) }),
    open: (sealed, { context }) => openGcm(sealed, { key, context }),
    random: (purpose) => counterRandom(derive('random'), Buffer.from(purpose)),
  }
}
