import type pg from 'pg'
import { sessions } from '../../../projections/sessions/tables.ts'
import type { Environment } from '../../../schemas/events.ts'
import { readByCursor } from '../cursor.ts'
import { progressBar } from '../progress.ts'
import {
  type FactRow,
  factFields,
  type Models,
  type Rehearsal,
  startRehearsal,
} from './rehearse.ts'

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

/** Draws on standard error how far it is. */
export async function rehearseRows(
  pool: pg.Pool,
  those: RehearsedSessions,
  models: Models,
): Promise<Rehearsal> {
  const rehearsal = startRehearsal(models)
  const { chosen, values } = chosenRows(those)
  const { rows: counts } = await pool.query<{ total: number }>(
    `select count(*)::float8 as total ${chosen}`,
    values,
  )
  const bar = progressBar(counts[0]?.total ?? 0)
  try {
    for await (const batch of factRows(pool, those)) {
      for (const row of batch) rehearsal.add(row)
      bar.add(batch.length)
    }
  } finally {
    bar.end()
  }
  return rehearsal.result()
}

export function factRows(pool: pg.Pool, those: RehearsedSessions): AsyncGenerator<FactRow[]> {
  const { chosen, values } = chosenRows(those)
  const text = `select ${sessions.select('s', ...factFields)}, array_to_string(s.signals, ' ') as signals, s.model
    ${chosen}`
  return readByCursor<FactRow>(pool, { text, values }, 5000)
}

function chosenRows({
  since,
  until,
  organizationId,
  exceptOrganizations,
  environment,
}: RehearsedSessions) {
  return {
    chosen: `from read.sessions s
      where evaluated_at >= $1 and evaluated_at < $2
        and ($3::text is null or organization_id = $3)
        and ($4::text is null or environment = $4)
        and organization_id <> all ($5)`,
    values: [since, until, organizationId ?? null, environment ?? null, exceptOrganizations ?? []],
  }
}
