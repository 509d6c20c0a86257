import type { Keyring } from '../crypto/keyring.ts'
import { open, seal } from '../crypto/sealing.ts'
import type { Random } from '../ids.ts'

/** An answer as it is sent, first and again. */
export interface Answer {
  status: number
  text: string
}

/**
 * Answers as they are stored: status u16 | text, sealed and bound to their row. An answer may show a secret that
 * exists nowhere else.
 */
export function createAnswerBox({ keyring, random }: { keyring: Keyring; random: Random }) {
  const sealing = (id: Buffer) => ({ keyring, purpose: 'idempotent-answer', context: id.toString('hex') })

  return {
    seal({ status, text }: Answer, id: Buffer): Buffer {
      const head = Buffer.alloc(2)
      head.writeUInt16BE(status)
      return seal(Buffer.concat([head, Buffer.from(text)]), { ...sealing(id), random })
    },
    /** Throws when the master key that sealed it is gone, or it is another row's. */
    open(sealed: Buffer, id: Buffer): Answer {
      const plaintext = open(sealed, sealing(id))
      if (!plaintext) throw new Error('a stored answer cannot be opened')
      return { status: plaintext.readUInt16BE(0), text: plaintext.toString('utf8', 2) }
    },
  }
}
