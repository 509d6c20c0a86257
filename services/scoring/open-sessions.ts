import { setTimeout as delay } from 'node:timers/promises'
import { unavailable } from '../../infra/errors/errors.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { progressOf } from '../../infra/log/progress.ts'
import type { Db, Tx } from '../../infra/postgres/pool.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { eventTopics } from '../../schemas/events.ts'
import { parsedState, readOffsets, type StoredStateRow } from './store.ts'
import { clientIdsOf, presentedKeys, visitorKeysOf } from './visitors/keys.ts'
import { gatheredKeys } from './visitors/links.ts'

export interface KnownBy {
  scope: DataScope
  visitorIds: string[]
  /** Continuity ids of their clients, in addition to those of their links. */
  continuityIds: string[]
}

/**
 * Sessions without a decision whose clients present ids of these visitors. All open sessions of the scope are read, which
 * are those of half an hour.
 */
export async function openSessionsOf(
  tx: Tx,
  { scope, visitorIds, continuityIds }: KnownBy,
): Promise<string[]> {
  const about = { organization_id: scope.organizationId, environment: scope.environment }
  const named = visitorKeysOf(
    { ...about, presented: continuityIds, issued: null, install: null },
    null,
  )
  const known = new Set([...named.presented, ...(await linkedKeys(tx, visitorIds))])
  if (known.size === 0) return []
  const { rows } = await tx.query<StoredStateRow>(
    // Scoring waits meanwhile, and states are large, so most of them are not even sent.
    `select session_id, state, constants from scoring.sessions
     where final_at is null and organization_id = $1 and environment = $2 and state like '%"decisions":0,%'
     order by session_id`,
    [scope.organizationId, scope.environment],
  )
  return rows.flatMap((row) => {
    const state = parsedState(row)
    if (state.decisions > 0) return []
    const presented = presentedKeys(visitorKeysOf(clientIdsOf(state), null))
    return presented.some((key) => known.has(key)) ? [state.session_id] : []
  })
}

async function linkedKeys(tx: Tx, visitorIds: string[]): Promise<string[]> {
  const theirs = '(select * from scoring.links where visitor_id = any($1)) theirs'
  const { rows } = await tx.query<{ key: string }>(
    `select encode(key, 'hex') as key from (${gatheredKeys(theirs)}) keys`,
    [visitorIds],
  )
  return rows.map(({ key }) => key)
}

/** Resolves once scoring has read all that the log has now; rejects with 503 when it does not in time. */
export async function scoringFollows(
  { pool, log }: { pool: Db; log: Pick<EventLog, 'firstPositions' | 'endPositions'> },
  { timeoutMs = 10_000, everyMs = 50 } = {},
): Promise<void> {
  const topic = eventTopics.BatchReceived
  const firsts = await log.firstPositions(topic)
  const ends = await log.endPositions(topic)
  const isBehind = async () =>
    progressOf({ stored: await readOffsets(pool, topic), firsts, ends }).some(
      ({ next, end }) => next < end,
    )
  const until = performance.now() + timeoutMs
  while (await isBehind()) {
    if (performance.now() > until)
      throw unavailable(new Error('scoring has not read the log in time'))
    await delay(everyMs)
  }
}
