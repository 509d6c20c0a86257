import type pg from 'pg'
import { errorMessage, systemCode } from '../thrown.ts'
import { ownSetting } from './pool.ts'

/**
 * What a connection sets does not hold, and so nor do notifications, locks and time limits. That is so in every mode of a
 * pooler, because a session's state is what it takes away, so that there is no setting to work behind one.
 */
class BehindPooler extends Error {
  constructor(options: ErrorOptions) {
    super(
      'DATABASE_URL leads to a connection pooler, such as PgBouncer, which does not keep what a connection sets. ' +
        'Name Postgres itself there, or a proxy that passes connections through.',
      options,
    )
  }
}

/** Throws BehindPooler. */
export async function refusePooler(pool: pg.Pool): Promise<void> {
  const asking = pool.query<{ value: string | null }>('select current_setting($1, true) as value', [
    ownSetting,
  ])
  const { rows } = await asking.catch((cause: unknown) => {
    throw isRefusedSetting(cause) ? new BehindPooler({ cause }) : cause
  })
  if (rows[0]?.value !== 'own') throw new BehindPooler({})
}

// PgBouncer calls a setting at the start of a connection a violation of the protocol.
const isRefusedSetting = (error: unknown) =>
  systemCode(error) === '08P01' && /parameter/.test(errorMessage(error))
