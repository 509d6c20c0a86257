import type pg from 'pg'
import { sessions } from '../../../projections/sessions/tables.ts'
import type { Environment } from '../../../schemas/events.ts'
import { progress } from '../progress.ts'
import {
  type FactRow,
  factFields,
  type Models,
  type Rehearsal,
  startRehearsal,
} from './rehearse.ts'
import { numberText } from './report.ts'

export interface RehearsedSessions {
  /** Epoch milliseconds of the newest decision. */
  since: number
  /** Not included. */
  until: number
  organizationId?: string | undefined
  /** Those whose sessions are left out. */
  exceptOrganizations?: string[]
  environment?: Environment | undefined
}

/** Says on standard error how far it is. */
export async function rehearseRows(
  pool: pg.Pool,
  those: RehearsedSessions,
  models: Models,
): Promise<Rehearsal> {
  const rehearsal = startRehearsal(models)
  const onProgress = progress()
  let rows = 0
  for await (const batch of factRows(pool, those)) {
    for (const row of batch) rehearsal.add(row)
    rows += batch.length
    onProgress(`${numberText(rows)} sessions`)
  }
  return rehearsal.result()
}

const batchSize = 5000

/** Reads batch by batch by a cursor, so that all are of one moment and never all in memory. */
export async function* factRows(
  pool: pg.Pool,
  those: RehearsedSessions,
): AsyncGenerator<FactRow[]> {
  const tx = await pool.connect()
  try {
    // Planned for all rows. Without the setting it would be for the first ones, which an index gives sooner.
    await tx.query('begin read only; set local cursor_tuple_fraction = 1')
    await tx.query(declaration(those))
    for (;;) {
      const { rows } = await tx.query<FactRow>(`fetch ${batchSize} from rehearsed`)
      if (rows.length === 0) return
      yield rows
    }
  } finally {
    // Whatever went wrong in it, it is not used again.
    tx.release(true)
  }
}

function declaration({
  since,
  until,
  organizationId,
  exceptOrganizations,
  environment,
}: RehearsedSessions) {
  return {
    text: `declare rehearsed no scroll cursor for
      select ${sessions.select('s', ...factFields)}, array_to_string(s.signals, ' ') as signals, s.model
      from read.sessions s
      where evaluated_at >= $1 and evaluated_at < $2
        and ($3::text is null or organization_id = $3)
        and ($4::text is null or environment = $4)
        and organization_id <> all ($5)`,
    values: [since, until, organizationId ?? null, environment ?? null, exceptOrganizations ?? []],
  }
}
