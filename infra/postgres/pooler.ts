import type pg from 'pg'
import { errorMessage, systemCode } from '../thrown.ts'
import { markerSetting } from './pool.ts'

/**
 * Thrown if the connections lose session state: settings, notifications, locks and timeouts. Every mode of a pooler
 * loses it, so no setting makes one work.
 */
class BehindPooler extends Error {
  constructor(options: ErrorOptions) {
    super(
      'DATABASE_URL points to a connection pooler such as PgBouncer, which loses session settings. ' +
        'Point it to Postgres itself, or to a proxy that passes connections through.',
      options,
    )
  }
}

/** Throws BehindPooler if the pool's connections go through a connection pooler. */
export async function refusePooler(pool: pg.Pool): Promise<void> {
  const query = pool.query<{ value: string | null }>('select current_setting($1, true) as value', [
    markerSetting,
  ])
  const { rows } = await query.catch((cause: unknown) => {
    throw isRefusedSetting(cause) ? new BehindPooler({ cause }) : cause
  })
  if (rows[0]?.value !== 'own') throw new BehindPooler({})
}

// PgBouncer rejects unknown startup parameters as a protocol violation.
const isRefusedSetting = (error: unknown) =>
  systemCode(error) === '08P01' && /parameter/.test(errorMessage(error))
