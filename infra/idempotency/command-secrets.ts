import { createHash, createHmac } from 'node:crypto'
import type { MasterKey } from '../crypto/keyring.ts'
import { createDataKey } from '../crypto/sealing.ts'
import type { Random } from '../ids.ts'
import { createDeterministicRandom } from '../random.ts'

/** Idempotency key with its scope: identifies a command. */
export interface CommandKey {
  /** Tenant or caller within which the key is unique. */
  scope: string
  /** The caller's Idempotency-Key. */
  key: string
}

export interface StoredResponse {
  status: number
  text: string
}

export interface CommandSecrets {
  random: Random
  /** Returns a MAC of the request that came with the key. */
  mac(text: string): Buffer
  seal(response: StoredResponse, random: Random): Buffer
  open(sealed: Buffer): StoredResponse
}

/** Returns the row id. It doesn't depend on the master key, so rows are found after a key rotation. */
export function commandId({ scope, key }: CommandKey): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([scope, key]))
    .digest()
}

/**
 * Derives a command's secrets from its seed and the caller's key. That key is stored nowhere, so even with the master
 * keys, the table and its copies in the WAL and in backups reveal no secret and no response.
 */
export function commandSecrets(
  master: MasterKey,
  { scope, key, seed }: CommandKey & { seed: Buffer },
): CommandSecrets {
  const parts = JSON.stringify([seed.toString('hex'), scope, key])
  const secret = createHmac('sha256', master.derive('idempotent-command')).update(parts).digest()
  const box = createDataKey(secret)
  const context = 'answer'
  return {
    random: createDeterministicRandom(secret, Buffer.from('random')),
    mac: (text) => createHmac('sha256', secret).update(`request${text}`).digest(),
    /** Encrypts status u16 | text. The text may contain a secret that is stored nowhere else. */
    seal({ status, text }, random) {
      const head = Buffer.alloc(2)
      head.writeUInt16BE(status)
      return box.seal(Buffer.concat([head, Buffer.from(text)]), { context, random })
    },
    open(sealed) {
      const plaintext = box.open(sealed, { context })
      if (!plaintext) throw new Error('failed to decrypt a stored response')
      return { status: plaintext.readUInt16BE(0), text: plaintext.toString('utf8', 2) }
    },
  }
}
