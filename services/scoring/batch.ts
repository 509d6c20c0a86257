import type pg from 'pg'
import { type Breathe, createBreather } from '../../infra/breather.ts'
import type { Clock } from '../../infra/ids.ts'
import type { Batch, EventLog, NewRecord } from '../../infra/log/port.ts'
import { type Tx, transaction } from '../../infra/postgres/pool.ts'
import type { EventCodec } from '../../schemas/codec.ts'
import { type Draft, startDrafting } from './drafts.ts'
import { withVisitor } from './evaluate.ts'
import type { NetworkSource } from './network.ts'
import { scoredEvent } from './scored.ts'
import { isSessionEvent, type SessionState } from './session-state.ts'
import { loadStates, lockOffset, saveOffset, saveStates } from './store.ts'
import { type RecordedVisitor, type Resolution, resolveVisitors } from './visitors/resolve.ts'

export interface ScoreDeps {
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  clock: Clock
  network: NetworkSource
}

export interface ScoreBatch {
  batch: Batch
  /** The visitors of those decisions that were appended already, where that may have happened. */
  findRecorded: (decisionIds: string[]) => Promise<Map<string, RecordedVisitor>>
}

/**
 * Scores one partition's records. The order is what makes a crash harmless:
 * 1. the offset row is locked: records before it are done, and no other process can be doing the rest;
 * 2. decisions are made and appended. Their ids derive from the events, so that a repeat adds nothing;
 * 3. states, visitors and the offset are committed together. A crash before that repeats from 1.
 * Returns the next offset when all records were done already.
 */
export function scoreBatch(
  deps: ScoreDeps,
  { batch, findRecorded }: ScoreBatch,
): Promise<number | undefined> {
  // Losing the last commits in a crash of Postgres only means to score again from an earlier offset.
  return transaction(deps.pool, (tx) => scoreIn(tx, deps, { batch, findRecorded }), { syncCommit: false })
}

async function scoreIn(tx: Tx, deps: ScoreDeps, { batch, findRecorded }: ScoreBatch) {
  const next = await lockOffset(tx, batch)
  const records = batch.records.filter((record) => record.offset >= next)
  const last = records.at(-1)
  if (!last) return next
  const now = deps.clock()
  const events = records.map(deps.codec.fromRecord).filter(isSessionEvent)
  const known = await loadStates(tx, [...new Set(events.map((event) => event.data.session_id))])
  const breathe = createBreather()
  const { take, changed, drafts } = startDrafting({ known, network: deps.network, now })
  for (const event of events) {
    take(event)
    await breathe()
  }
  const recorded = await findRecorded(drafts.map(({ trigger }) => trigger.decisionId))
  const resolution = await resolveVisitors({ tx, drafts, recorded, now })
  await append(deps, { drafts, resolution, startedAt: now, breathe })
  await resolution.index.save(tx)
  await saveStates(tx, linked(changed, resolution))
  await saveOffset(tx, batch, last.offset + 1)
  return undefined
}

interface Append {
  drafts: Draft[]
  resolution: Resolution
  startedAt: number
  breathe: Breathe
}

async function append(deps: ScoreDeps, { drafts, resolution, startedAt, breathe }: Append) {
  if (drafts.length === 0) return
  const evaluatedAt = deps.clock()
  const durationMs = Math.max(0, Math.round(evaluatedAt - startedAt))
  const records: NewRecord[] = []
  for (const { state, trigger, evaluation } of drafts) {
    const resolved = resolution.visitors.get(state.session_id)
    const visitor = resolved?.link ?? null
    const weighed = withVisitor(evaluation, resolved?.sessions ?? 0)
    const { event, meta } = scoredEvent({
      state,
      trigger,
      evaluation: weighed,
      visitor,
      evaluatedAt,
      durationMs,
    })
    records.push(deps.codec.toRecord(event, meta))
    await breathe()
  }
  await deps.log.append(records)
}

/** The states with the visitors that were found for them. */
function linked(changed: Map<string, SessionState>, { visitors }: Resolution): SessionState[] {
  return [...changed.values()].map((state) => {
    const resolved = visitors.get(state.session_id)
    return resolved ? { ...state, visitor: resolved.link, visitor_sessions: resolved.sessions } : state
  })
}
