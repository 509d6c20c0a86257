import { createHash, createHmac } from 'node:crypto'
import type { MasterKey } from '../crypto/keyring.ts'
import { createDataKey } from '../crypto/sealing.ts'
import type { Random } from '../ids.ts'
import { counterRandom } from '../random.ts'

/** Who names the command, and how. */
export interface CommandName {
  scope: string
  /** The caller's Idempotency-Key. */
  key: string
}

export interface StoredAnswer {
  status: number
  text: string
}

export interface CommandSecrets {
  random: Random
  /** Identifies the request that came with the key. */
  mac(text: string): Buffer
  seal(answer: StoredAnswer, random: Random): Buffer
  open(sealed: Buffer): StoredAnswer
}

/** The same under every master key, so that a row is found whichever was the current one when it was made. */
export function commandId({ scope, key }: CommandName): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([scope, key]))
    .digest()
}

/**
 * All that follows from a command's seed. It takes the caller's key, too, which is stored nowhere. So the table and its
 * copies in the WAL and in backups tell no secret and no answer to who has the master keys.
 */
export function commandSecrets(
  master: MasterKey,
  { scope, key, seed }: CommandName & { seed: Buffer },
): CommandSecrets {
  const parts = JSON.stringify([seed.toString('hex'), scope, key])
  const secret = createHmac('sha256', master.derive('idempotent-command')).update(parts).digest()
  const box = createDataKey(secret)
  const context = 'answer'
  return {
    random: counterRandom(secret, Buffer.from('random')),
    mac: (text) => createHmac('sha256', secret).update(`request${text}`).digest(),
    /** status u16 | text. It may show a secret that exists nowhere else. */
    seal({ status, text }, random) {
      const head = Buffer.alloc(2)
      head.writeUInt16BE(status)
      return box.seal(Buffer.concat([head, Buffer.from(text)]), { context, random })
    },
    open(sealed) {
      const plaintext = box.open(sealed, { context })
      if (!plaintext) throw new Error('a stored answer cannot be opened')
      return { status: plaintext.readUInt16BE(0), text: plaintext.toString('utf8', 2) }
    },
  }
}
