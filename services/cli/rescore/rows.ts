import type pg from 'pg'
import { sessions } from '../../../projections/sessions/tables.ts'
import type { Environment } from '../../../schemas/events.ts'
import { readByCursor } from '../cursor.ts'
import { progressBar } from '../progress.ts'
import {
  createRehearsal,
  type FactRow,
  type Models,
  type Rehearsal,
  rehearsalColumns,
} from './rehearse.ts'

/** Selection of sessions by the time of their newest decision. */
export interface RehearsalSelection {
  /** Epoch milliseconds. */
  since: number
  /** Exclusive. */
  until: number
  organizationId?: string | undefined
  /** Ids of organizations whose sessions are left out. */
  excludedOrganizations?: string[]
  environment?: Environment | undefined
}

/** Rehearses the selected sessions, and shows a progress bar on standard error. */
export async function rehearseSessions(
  pool: pg.Pool,
  selection: RehearsalSelection,
  models: Models,
): Promise<Rehearsal> {
  const rehearsal = createRehearsal(models)
  const { source, values } = selectionSql(selection)
  const { rows: counts } = await pool.query<{ total: number }>(
    `select count(*)::float8 as total ${source}`,
    values,
  )
  const bar = progressBar(counts[0]?.total ?? 0)
  try {
    for await (const batch of factRows(pool, selection)) {
      for (const row of batch) rehearsal.add(row)
      bar.add(batch.length)
    }
  } finally {
    bar.end()
  }
  return rehearsal.result()
}

export function factRows(pool: pg.Pool, selection: RehearsalSelection): AsyncGenerator<FactRow[]> {
  const { source, values } = selectionSql(selection)
  const text = `select ${sessions.select('s', ...rehearsalColumns)}, array_to_string(s.signals, ' ') as signals, s.model
    ${source}`
  return readByCursor<FactRow>(pool, { text, values }, 5000)
}

function selectionSql({
  since,
  until,
  organizationId,
  excludedOrganizations,
  environment,
}: RehearsalSelection) {
  return {
    source: `from read.sessions s
      where evaluated_at >= $1 and evaluated_at < $2
        and ($3::text is null or organization_id = $3)
        and ($4::text is null or environment = $4)
        and organization_id <> all ($5)`,
    values: [
      since,
      until,
      organizationId ?? null,
      environment ?? null,
      excludedOrganizations ?? [],
    ],
  }
}
