import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import type { Random } from '../ids.ts'
import { counterRandom } from './counter-random.ts'

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
  const sealing = derive('seal')
  return {
    seal(plaintext, { context, random }) {
      const iv = random(12)
      const cipher = createCipheriv('aes-256-gcm', sealing, iv)
      cipher.setAAD(Buffer.from(context))
      const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()])
      return Buffer.concat([iv, cipher.getAuthTag(), ciphertext])
    },
    open(sealed, { context }) {
      if (sealed.length < 28) return undefined
      const decipher = createDecipheriv('aes-256-gcm', sealing, sealed.subarray(0, 12))
      decipher.setAAD(Buffer.from(context))
      decipher.setAuthTag(sealed.subarray(12, 28))
      try {
        return Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()])
      } catch {
        return undefined
      }
    },
    random: (purpose) => counterRandom(derive('random'), Buffer.from(purpose)),
  }
}
