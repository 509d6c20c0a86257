import { setTimeout as delay } from 'node:timers/promises'
import { unavailable } from '../../infra/errors/errors.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { progressOf } from '../../infra/log/progress.ts'
import type { Db, Tx } from '../../infra/postgres/pool.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { eventTopics } from '../../schemas/events.ts'
import { parseState, readOffsets, type StoredStateRow } from './store.ts'
import { clientIdsOf, presentedKeys, visitorKeysOf } from './visitors/keys.ts'
import { keysFromLinksSql } from './visitors/links.ts'

export interface VisitorIdentifiers {
  scope: DataScope
  visitorIds: string[]
  /** Continuity ids of the visitors' clients, in addition to those of their links. */
  continuityIds: string[]
}

/**
 * Returns the ids of open sessions without a decision whose clients present ids of these visitors. Reads all open
 * sessions of the scope, which are those active within about half an hour.
 */
export async function undecidedSessionsOf(
  tx: Tx,
  { scope, visitorIds, continuityIds }: VisitorIdentifiers,
): Promise<string[]> {
  const { organizationId: organization_id, environment } = scope
  const continuityKeys = visitorKeysOf(
    { organization_id, environment, presented: continuityIds, issued: null, install: null },
    null,
  )
  const keys = new Set([...continuityKeys.presented, ...(await linkedKeys(tx, visitorIds))])
  if (keys.size === 0) return []
  const { rows } = await tx.query<StoredStateRow>(
    // States are large and scoring is blocked meanwhile, so filter in the database first.
    `select session_id, state, constants from scoring.sessions
     where final_at is null and organization_id = $1 and environment = $2 and state like '%"decisions":0,%'
     order by session_id`,
    [organization_id, environment],
  )
  return rows.flatMap((row) => {
    const state = parseState(row)
    if (state.decisions > 0) return []
    const presented = presentedKeys(visitorKeysOf(clientIdsOf(state), null))
    return presented.some((key) => keys.has(key)) ? [state.session_id] : []
  })
}

async function linkedKeys(tx: Tx, visitorIds: string[]): Promise<string[]> {
  const links = '(select * from scoring.links where visitor_id = any($1)) links'
  const { rows } = await tx.query<{ key: string }>(
    `select encode(key, 'hex') as key from (${keysFromLinksSql(links)}) keys`,
    [visitorIds],
  )
  return rows.map(({ key }) => key)
}

/** Resolves once scoring has read all current records of the log. Rejects with 503 after `timeoutMs`. */
export async function waitForScoring(
  { pool, log }: { pool: Db; log: Pick<EventLog, 'firstPositions' | 'endPositions'> },
  { timeoutMs = 10_000, pollMs = 50 } = {},
): Promise<void> {
  const topic = eventTopics.BatchReceived
  const starts = await log.firstPositions(topic)
  const ends = await log.endPositions(topic)
  const isBehind = async () =>
    progressOf({ stored: await readOffsets(pool, topic), starts, ends }).some(
      ({ next, end }) => next < end,
    )
  const until = performance.now() + timeoutMs
  while (await isBehind()) {
    if (performance.now() > until)
      throw unavailable(new Error('scoring did not catch up with the log in time'))
    await delay(pollMs)
  }
}
