import type { Prune } from '../../infra/event-store/projection.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { factNames } from './facts.ts'
import { changedSession, deleteHoursOfRows, type TimedSession } from './hours.ts'

// So many rows are locked at once, and so many entries of the index read.
const chunk = 1000
const lookedAtOnce = 10_000

interface Reached {
  before: number
  at: number
  sessionId: string
}

/**
 * Decisions of sessions that stay longer than these, so it remembers how far it came. Once more has ended it begins anew,
 * because a decision may have come late, where a partition stood still: an index alone says which sessions have none.
 */
export function createDecisionsPrune(): Prune {
  const reached = new Map<string, Reached>()
  return async (tx, ended) => {
    for (const { organization_id, decisions_before: before, sessions_before } of ended) {
      if (before === null || before === sessions_before) continue
      for (const environment of ['live', 'test']) {
        const name = `${organization_id} ${environment}`
        const known = reached.get(name)
        const from = known?.before === before ? known : { before, at: 0, sessionId: '' }
        const found = await sessionsWithEndedDecisions(tx, { organization_id, environment, from })
        const last = found.at(-1)
        if (!last) continue
        const ids = found.filter(({ is_due }) => is_due).map((row) => row.session_id)
        if (ids.length > 0) {
          await deleteDecisions(tx, ids)
          await endFacts(tx, ids)
        }
        reached.set(name, { before, at: last.at, sessionId: last.session_id })
        return true
      }
    }
    return false
  }
}

interface Looking {
  organization_id: string
  environment: string
  from: Reached
}

// In order, with the last one that was looked at.
async function sessionsWithEndedDecisions(
  tx: Tx,
  { organization_id, environment, from: { before, at, sessionId } }: Looking,
): Promise<{ session_id: string; at: number; is_due: boolean }[]> {
  const { rows } = await tx.query<{ session_id: string; at: number; is_due: boolean }>({
    name: 'sessions-to-prune-decisions-of',
    text: `with page as materialized (
        select session_id, evaluated_at, scoring_version is not null as is_due from sessions
        where organization_id = $1 and environment = $2 and (evaluated_at, session_id) > ($3, $4)
          and evaluated_at < $5 order by evaluated_at, session_id limit ${lookedAtOnce}
      )
      select session_id, evaluated_at::float8 as at, is_due from page
      where is_due or (evaluated_at, session_id) = (
        select evaluated_at, session_id from page order by evaluated_at desc, session_id desc limit 1)
      order by evaluated_at, session_id limit ${chunk}`,
    values: [organization_id, environment, at, sessionId, before],
  })
  return rows
}

// The row stays with what lists show.
async function endFacts(tx: Tx, sessionIds: string[]): Promise<void> {
  const { rows } = await tx.query<TimedSession>({
    name: 'end-facts',
    text: `update sessions s set ${endedColumns.map((name) => `${name} = null`).join(', ')}
      where session_id = any($1) and scoring_version is not null returning ${changedSession('s')}`,
    values: [sessionIds],
  })
  await deleteHoursOfRows(tx, rows)
}

const endedColumns = [...factNames, 'signal_codes', 'page_text', 'agent_text', 'address_text']

export const deleteDecisions = (tx: Tx, sessionIds: string[]) =>
  tx.query('delete from decisions where session_id = any($1)', [sessionIds])
