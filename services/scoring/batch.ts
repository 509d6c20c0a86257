import type pg from 'pg'
import type { EventCodec, RecordedEvent } from '../../infra/event-store/codec.ts'
import type { Clock } from '../../infra/ids.ts'
import type { NetworkSource } from '../../infra/ip/network.ts'
import type { EventLog, NewRecord, Position } from '../../infra/log/port.ts'
import { type Tx, transaction } from '../../infra/postgres/pool.ts'
import { type Breathe, createBreather } from '../../infra/timing.ts'
import { type Draft, type Drafts, startDrafting, withVisitor } from './decide.ts'
import { scoredEvent } from './scored-event.ts'
import { isSessionEvent, type SessionState } from './session-state.ts'
import { loadStates, lockOffset, saveOffset, saveStates } from './store.ts'
import { type RecordedVisitor, type Resolution, resolveVisitors } from './visitors/resolve.ts'

interface ScoreDeps {
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  clock: Clock
  network: NetworkSource
}

interface ScoreBatch {
  events: RecordedEvent[]
  /** Where the events end: the partition and the next offset after them. */
  end: Position
  logTime: number
  /** The next offset that this process believes to be the one to score. */
  expected: number
  findRecorded: (decisionIds: string[]) => Promise<Map<string, RecordedVisitor>>
}

export interface ScoreOutcome {
  /** `behind`: Postgres lost commits that this process has seen, nothing was scored: read again from `nextOffset`. */
  kind: 'scored' | 'behind'
  nextOffset: number
}

/** No decision can be made or written down for these events: trying again will not help. */
export class Unscorable extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.name = 'Unscorable'
  }
}

/**
 * Scores one partition's events. The order is what makes a crash harmless:
 * 1. the offset row is locked: events before it are done, and no other process can be doing the rest;
 * 2. decisions are made and appended. Their ids derive from the events, so that a repeat adds nothing;
 * 3. states, visitors and the offset are committed together. A crash before that repeats from 1.
 */
export function scoreBatch(deps: ScoreDeps, batch: ScoreBatch): Promise<ScoreOutcome> {
  // Losing the last commits in a crash of Postgres only means to score again from an earlier offset.
  return transaction(deps.pool, (tx) => scoreIn(tx, deps, batch), { syncCommit: false })
}

async function scoreIn(tx: Tx, deps: ScoreDeps, batch: ScoreBatch): Promise<ScoreOutcome> {
  const { events, end, expected, logTime } = batch
  const next = await lockOffset(tx, end)
  if (next < expected && next < (events[0]?.position.offset ?? end.offset))
    return { kind: 'behind', nextOffset: next }
  if (events.length === 0 || next >= end.offset) return { kind: 'scored', nextOffset: next }
  const startedAt = deps.clock()
  const breathe = createBreather()
  const todo = events.filter((event) => event.position.offset >= next)
  const { changed, drafts } = await draft(tx, { deps, events: todo, now: startedAt, breathe })
  const recorded = await batch.findRecorded(drafts.map(({ trigger }) => trigger.decisionId))
  const resolution = await resolveVisitors({ tx, drafts, recorded, now: startedAt })
  const records = await encode(deps, { drafts, resolution, startedAt, breathe })
  if (records.length > 0) await deps.log.append(records)
  await resolution.index.save(tx)
  await saveStates(tx, end, linked(changed, resolution))
  await saveOffset(tx, { ...end, logTime })
  return { kind: 'scored', nextOffset: end.offset }
}

interface ToDraft {
  deps: ScoreDeps
  events: RecordedEvent[]
  now: number
  breathe: Breathe
}

async function draft(tx: Tx, { deps, events, now, breathe }: ToDraft): Promise<Drafts> {
  const mine = events.filter(isSessionEvent)
  const known = await loadStates(tx, [...new Set(mine.map((event) => event.data.session_id))])
  const { apply, changed, drafts } = startDrafting({ known, network: deps.network, now })
  for (const event of mine) {
    orUnscorable(() => apply(event))
    await breathe()
  }
  return { changed, drafts }
}

interface ToEncode {
  drafts: Draft[]
  resolution: Resolution
  startedAt: number
  breathe: Breathe
}

async function encode({ codec, clock }: ScoreDeps, todo: ToEncode): Promise<NewRecord[]> {
  const evaluatedAt = clock()
  const durationMs = Math.max(0, Math.round(evaluatedAt - todo.startedAt))
  const records: NewRecord[] = []
  for (const { state, trigger, evaluation: unlinked } of todo.drafts) {
    const resolved = todo.resolution.visitors.get(state.session_id)
    const visitor = resolved?.link ?? null
    const record = orUnscorable(() => {
      const evaluation = withVisitor(unlinked, resolved?.sessions ?? 0)
      const { event, meta } = scoredEvent({ state, trigger, evaluation, visitor, evaluatedAt, durationMs })
      return codec.toRecord(event, meta)
    })
    records.push(record)
    await todo.breathe()
  }
  return records
}

function orUnscorable<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new Unscorable(error)
  }
}

function linked(changed: Map<string, SessionState>, { visitors }: Resolution): SessionState[] {
  return [...changed.values()].map((state) => {
    const resolved = visitors.get(state.session_id)
    return resolved ? { ...state, visitor: resolved.link, visitor_sessions: resolved.sessions } : state
  })
}
