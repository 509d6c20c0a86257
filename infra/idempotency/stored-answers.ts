import type { FastifyReply } from 'fastify'
import type pg from 'pg'
import type { Keyring } from '../crypto/keyring.ts'
import type { Clock, Random } from '../ids.ts'
import { createAnswerBox, type RunOptions } from './idempotency.ts'
import { idempotencyKeyOf, inFlight, keyReused, mac, requestText } from './identity.ts'

interface StoredAnswersOptions {
  pool: pg.Pool
  keyring: Keyring
  clock: Clock
  random: Random
}

type Unattended = Required<Omit<RunOptions, 'requester'>>

interface Stored {
  id: Buffer
  requestMac: Buffer
  answer: Buffer | null
  isLocked: boolean
}

/**
 * Repeats answers that `Idempotency.run` has stored. It reads one row and makes none, so that it may come before a
 * request is counted.
 */
export function createStoredAnswers({ pool, keyring, clock, random }: StoredAnswersOptions) {
  const box = createAnswerBox({ keyring, random })

  async function find(ids: Buffer[]): Promise<Stored | undefined> {
    const { rows } = await pool.query<Stored>(
      `select id, request_mac as "requestMac", answer, locked_until > $2 as "isLocked"
       from tidegate.idempotency_keys
       where id = any($1::bytea[]) and expires_at > $2 order by created_at desc limit 1`,
      [ids, clock()],
    )
    return rows[0]
  }

  return {
    /**
     * Sends the answer that the request's Idempotency-Key has got before. undefined when there is no key, or no
     * answer yet. ApiError: 422 for a bad key or one that came with another request, 409 while the first request is
     * under way.
     */
    async replay({ request, reply, scope }: Unattended): Promise<FastifyReply | undefined> {
      const key = idempotencyKeyOf(request)
      if (key === undefined) return undefined
      const masters = keyring.all.map((master) => ({ master, id: mac(master, 'key', scope, key) }))
      const row = await find(masters.map(({ id }) => id))
      const made = masters.find(({ id }) => row?.id.equals(id))
      if (!row || !made) return undefined
      if (!row.requestMac.equals(mac(made.master, 'request', requestText(request)))) throw keyReused()
      if (!row.answer && row.isLocked) throw inFlight()
      if (!row.answer) return undefined
      const { status, text } = box.open(row.answer, row.id)
      reply.header('idempotent-replayed', 'true')
      return reply.code(status).type('application/json; charset=utf-8').send(text)
    },
  }
}
