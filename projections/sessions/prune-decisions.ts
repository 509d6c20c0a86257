import type { Prune } from '../../infra/event-store/projection.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { factNames } from './facts.ts'
import { deleteRollUps, type TimedSession, timedSessionSql } from './hours.ts'

// Limits the rows that one call locks.
const chunk = 1000
// Limits the index entries that one call reads.
const scanSize = 10_000

interface ScanPosition {
  before: number
  at: number
  sessionId: string
}

/**
 * Returns a function that deletes expired decisions of sessions that are kept longer. It remembers its position, and
 * starts over when the cutoff advances, because a stuck partition can deliver expired decisions late.
 */
export function createDecisionPruner(): Prune {
  const positions = new Map<string, ScanPosition>()
  return async (tx, cutoffs) => {
    for (const { organization_id, decisions_before: before, sessions_before } of cutoffs) {
      if (before === null || before === sessions_before) continue
      for (const environment of ['live', 'test']) {
        const scope = `${organization_id} ${environment}`
        const previous = positions.get(scope)
        const from = previous?.before === before ? previous : { before, at: 0, sessionId: '' }
        const page = await findSessionsToPrune(tx, { organization_id, environment, from })
        const last = page.at(-1)
        if (!last) continue
        const ids = page.filter(({ is_due }) => is_due).map((row) => row.session_id)
        if (ids.length > 0) {
          await deleteDecisions(tx, ids)
          await clearFacts(tx, ids)
        }
        positions.set(scope, { before, at: last.at, sessionId: last.session_id })
        return true
      }
    }
    return false
  }
}

interface Scan {
  organization_id: string
  environment: string
  from: ScanPosition
}

// Returns sessions with decisions to delete and the last session that was scanned, in order, at most `chunk`.
async function findSessionsToPrune(
  tx: Tx,
  { organization_id, environment, from: { before, at, sessionId } }: Scan,
): Promise<{ session_id: string; at: number; is_due: boolean }[]> {
  const { rows } = await tx.query<{ session_id: string; at: number; is_due: boolean }>({
    name: 'sessions-to-prune-decisions-of',
    text: `with page as materialized (
        select session_id, evaluated_at, scoring_version is not null as is_due from sessions
        where organization_id = $1 and environment = $2 and (evaluated_at, session_id) > ($3, $4)
          and evaluated_at < $5 order by evaluated_at, session_id limit ${scanSize}
      )
      select session_id, evaluated_at::float8 as at, is_due from page
      where is_due or (evaluated_at, session_id) = (
        select evaluated_at, session_id from page order by evaluated_at desc, session_id desc limit 1)
      order by evaluated_at, session_id limit ${chunk}`,
    values: [organization_id, environment, at, sessionId, before],
  })
  return rows
}

// Keeps the rows, with the columns that lists need.
async function clearFacts(tx: Tx, sessionIds: string[]): Promise<void> {
  const { rows } = await tx.query<TimedSession>({
    name: 'end-facts',
    text: `update sessions s set ${clearedColumns.map((name) => `${name} = null`).join(', ')}
      where session_id = any($1) and scoring_version is not null returning ${timedSessionSql('s')}`,
    values: [sessionIds],
  })
  await deleteRollUps(tx, rows)
}

const clearedColumns = [...factNames, 'signal_codes', 'page_text', 'agent_text', 'address_text']

export const deleteDecisions = (tx: Tx, sessionIds: string[]) =>
  tx.query('delete from decisions where session_id = any($1)', [sessionIds])
