import type pg from 'pg'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import type { DataKeys } from '../../infra/event-store/data-keys.ts'
import type { DecidedEvent } from '../../infra/event-store/decide.ts'
import type { RecordedEvent, TrafficEvent } from '../../infra/event-store/event.ts'
import { dueOf, type EventBatch, EventFailed } from '../../infra/event-store/event-batch.ts'
import { type Clock, derivedId } from '../../infra/ids.ts'
import type { EventLog, NewRecord, Position } from '../../infra/log/port.ts'
import type { Part } from '../../infra/postgres/arrays.ts'
import { shortTransaction, type Tx } from '../../infra/postgres/pool.ts'
import { saveRows } from '../../infra/postgres/table.ts'
import { type Breathe, createBreather } from '../../infra/timing.ts'
import { countingKeyId } from '../../projections/answers/digests.ts'
import type { CountedSession } from '../../projections/repeats/counted.ts'
import type { NearRepeats } from '../../projections/repeats/near-counts.ts'
import type { RepeatCounter } from '../../projections/repeats/queries.ts'
import type { Repeats, SessionScored, VisitorLinked, VisitorSplit } from '../../schemas/events.ts'
import type { Attesting } from './attestation/devices.ts'
import { attestationsOf, withAttestations } from './attestation/outcomes.ts'
import { type Decision, type DecisionSources, startDecisions } from './decide.ts'
import type { Lookups } from './identity/lookups.ts'
import { outcomesOf, pendingOf, withOutcomes } from './identity/outcomes.ts'
import type { ModelsAt } from './model/follow.ts'
import { scoredEvent } from './scored-event.ts'
import { isSessionEvent, type SessionState } from './session/state.ts'
import { withHistory } from './signals/evaluate.ts'
import {
  noteWritten,
  type Opened,
  openingStatements,
  readOpened,
  saveStates,
  type WrittenStates,
  writtenOf,
} from './store.ts'
import { offsets } from './tables.ts'
import { type Resolution, type Resolved, resolveVisitors } from './visitors/resolve.ts'
import type { MadeDecision, Recorded } from './visitors/split.ts'

export interface ScoreDeps extends DecisionSources {
  log: EventLog
  /** Has the key of the month, under which visitors and networks are counted. */
  dataKeys: Pick<DataKeys, 'ensure' | 'get'>
  pool: pg.Pool
  codec: EventCodec
  clock: Clock
  /** Default: the standard model, always. */
  modelsAt?: ModelsAt | undefined
  /** Called for each decision that was appended for the first time. */
  onDecided?: ((decision: SessionScored) => void) | undefined
  /** Default: nothing of agents is looked up. */
  lookups?: Pick<Lookups, 'request'> | undefined
  /** Default: no attestation is looked at. */
  attesting?: Attesting | undefined
}

interface ScoreBatches {
  batches: EventBatch[]
  findRecorded: (made: MadeDecision[]) => Promise<Recorded>
  countRepeats: RepeatCounter
  written: WrittenStates
}

/**
 * Scores what came of several partitions, and returns where each goes on. The order is what makes a crash harmless:
 * 1. the offset rows are locked: events before them are done, and no other process can be doing the rest;
 * 2. decisions are made and appended. Their ids derive from the events, so that a repeat adds nothing;
 * 3. states, visitors and offsets are committed together. A crash before that repeats from 1.
 * Throws EventFailed when no decision can be made or written down for an event.
 */
export async function scoreBatches(deps: ScoreDeps, work: ScoreBatches): Promise<Position[]> {
  const { batches: places, written } = work
  const sessionIds = sessionsOf(places)
  const known = writtenOf(written, sessionIds)
  const { next, ...committed } = await shortTransaction(deps.pool, {
    first: openingStatements({ places, sessionIds, known }),
    work: (tx, rows) => scoreIn({ tx, opened: readOpened(rows, known) }, deps, work),
  })
  noteWritten(written, committed)
  return next
}

// No more is decided about a session that was erased or whose key is lost, because its observations are unreadable.
const isScored = (event: RecordedEvent, erased: Set<string>): boolean =>
  event.unreadable === undefined && !(isSessionEvent(event) && erased.has(event.data.session_id))

interface Scored {
  result: { next: Position[]; states: SessionState[]; transactionId: string }
  writes: Part[]
}

async function scoreIn(
  { tx, opened }: { tx: Tx; opened: Opened },
  deps: ScoreDeps,
  { batches, findRecorded, countRepeats }: ScoreBatches,
): Promise<Scored> {
  const { offsets: scoredTo, transactionId, states: known, erased } = opened

  // 1. Leave out what was scored before, and sessions that are erased.
  const due = batches.map((batch) => ({
    ...batch,
    ...dueOf(batch, scoredTo.get(batch.partition) ?? 0),
  }))
  const next = due.map(({ topic, partition, next: offset }) => ({ topic, partition, offset }))
  const unread = due.filter((batch) => batch.next > (scoredTo.get(batch.partition) ?? 0))
  if (unread.length === 0) return { result: { next, states: [], transactionId }, writes: [] }
  const events = unread.flatMap((batch) => batch.events).filter((event) => isScored(event, erased))

  // 2. Read what decisions need beside the sessions: the model, agents, attestations.
  const startedAt = deps.clock()
  const modelOf = await deps.modelsAt?.(startedAt, tx)
  const agents = await outcomesOf(tx, pendingOf(events, known), startedAt)
  const attestations = await attestationsOf(tx, { events, known }, deps.attesting)
  const addOutcomes = [withOutcomes(agents), withAttestations(attestations)]

  // 3. Decide, each session by what it says itself.
  const breathe = createBreather()
  const { apply, changed, decisions } = startDecisions(known, {
    ...deps,
    modelOf,
    now: startedAt,
    handingOff: handingOffIn(events),
    withOutcomes: (state, event) => addOutcomes.reduce((found, add) => add(found, event), state),
  })
  for (const event of events.filter(isSessionEvent)) {
    orFailed(() => apply(event, event.meta.traceparent))
    await breathe()
  }

  // 4. Add what other sessions say: the visitor, and what they have in common with it.
  const recorded = await findRecorded(
    decisions.map(({ state, trigger: { decisionId } }) => ({
      decisionId,
      sessionId: state.session_id,
    })),
  )
  const wanted = decisions.filter(
    ({ trigger, state }) => trigger.final || !recorded.final.has(state.session_id),
  )
  const resolution = await resolveVisitors(tx, { decisions: wanted, recorded, now: startedAt })
  const counted = await withCounts(wanted, resolution, (sessions) => countRepeats(tx, sessions))
  const scored = await scoredEvents(deps, { decisions: counted, resolution, startedAt, breathe })

  // 5. Append the decisions.
  const records = await toRecords(deps.codec, scored)
  const links = await linkRecords(deps.codec, resolution.linked, decisions)
  const splits = resolution.splits.map((data) => splitRecord(deps.codec, data))
  if (records.length > 0) await deps.log.append([...splits, ...records, ...links])
  countDecisions(deps, { scored, recorded })
  // Before the commit, because a batch that fails is scored again and requests the same.
  for (const request of agents.requests) deps.lookups?.request(request)

  // 6. Return what is committed with the offsets.
  const nextOffsets = unread.map(({ topic, partition, next: next_offset, timeBefore }) => ({
    topic,
    partition,
    next_offset,
    log_time: timeBefore(next_offset),
  }))
  const states = withVisitors(changed, resolution)
  const writes = [
    ...resolution.index.save(),
    ...attestations.save(),
    ...saveStates({ states, partitions: partitionsOf(events), known }),
    ...saveRows(offsets, nextOffsets),
  ]
  return { result: { next, states, transactionId }, writes }
}

const sessionsOf = (batches: EventBatch[]): string[] => [
  ...new Set(
    batches.flatMap(({ events }) =>
      events.filter(isSessionEvent).map(({ data }) => data.session_id),
    ),
  ),
]

const handingOffIn = (events: RecordedEvent[]): Set<string> =>
  new Set(events.flatMap(({ type, data }) => (type === 'ResultRequested' ? [data.session_id] : [])))

const partitionsOf = (events: RecordedEvent[]): Map<string, number> =>
  new Map(
    events
      .filter(isSessionEvent)
      .map(({ data, position }) => [data.session_id, position.partition]),
  )

type Counted = Decision & { repeats: Repeats | null; near: NearRepeats | null }

// What others did is counted when a session hands off or ends, because a count costs as much as the rest of a decision.
async function withCounts(
  decisions: Decision[],
  { visitors }: Resolution,
  count: (sessions: CountedSession[]) => ReturnType<RepeatCounter>,
): Promise<Counted[]> {
  const final = decisions.filter(({ trigger }) => trigger.final)
  const sessions = final.map(({ state, trigger, hashes }) => ({
    session_id: state.session_id,
    organization_id: state.organization_id,
    environment: state.environment,
    opened_at: state.created_at,
    at: trigger.at,
    ip_address: state.ip_address,
    visitor_id: visitors.get(state.session_id)?.link.id ?? null,
    ...hashes,
  }))
  const counts = sessions.length > 0 ? await count(sessions) : []
  const counted = new Map(final.map((decision, i) => [decision, counts[i] ?? null]))
  return decisions.map((decision) => {
    const { repeats = null, near = null } = counted.get(decision) ?? {}
    return { ...decision, repeats, near }
  })
}

async function scoredEvents(
  { clock, dataKeys }: ScoreDeps,
  {
    decisions,
    resolution,
    startedAt,
    breathe,
  }: { decisions: Counted[]; resolution: Resolution; startedAt: number; breathe: Breathe },
): Promise<DecidedEvent<TrafficEvent>[]> {
  const now = clock()
  const countingKey = decisions.length > 0 ? await countingKeyOf(dataKeys, now) : null
  const durationMs = Math.max(0, Math.round(now - startedAt))
  const decided: DecidedEvent<TrafficEvent>[] = []
  for (const { evaluation: own, modelUntil, repeats, near, ...decision } of decisions) {
    const resolved = resolution.visitors.get(decision.state.session_id)
    // The model of the batch's beginning made it, so it is of a time at which that was in force.
    const evaluatedAt = Math.min(now, modelUntil - 1)
    const scored = orFailed(() => {
      const { link: visitor = null, isCopied } = resolved ?? {}
      const evaluation = withHistory(own, {
        visitorSessions: knownSessions(resolved),
        isCopied,
        repeats,
        near,
      })
      return scoredEvent({ ...decision, evaluation, visitor, countingKey, evaluatedAt, durationMs })
    })
    decided.push(scored)
    await breathe()
  }
  return decided
}

// After a crash the same decisions are appended again.
function countDecisions(
  { onDecided }: ScoreDeps,
  { scored, recorded }: { scored: DecidedEvent<TrafficEvent>[]; recorded: Recorded },
): void {
  for (const { event, meta } of scored)
    if (event.type === 'SessionScored' && !recorded.decisionIds.has(meta.eventId))
      onDecided?.(event.data)
}

async function countingKeyOf(dataKeys: ScoreDeps['dataKeys'], now: number) {
  const id = countingKeyId(now)
  await dataKeys.ensure([id])
  return dataKeys.get(id)
}

async function toRecords(
  codec: EventCodec,
  decided: DecidedEvent<TrafficEvent>[],
): Promise<NewRecord[]> {
  await codec.prepare(decided.map(({ event }) => event))
  return decided.map(({ event, meta }) => orFailed(() => codec.toRecord(event, meta)))
}

function linkRecords(
  codec: EventCodec,
  linked: VisitorLinked[],
  decisions: Decision[],
): Promise<NewRecord[]> {
  const traces = new Map(decisions.map(({ state, traceparent }) => [state.session_id, traceparent]))
  const decided = linked.map((data): DecidedEvent<TrafficEvent> => {
    const {
      session_id,
      visitor_id,
      linked_at: time,
      organization_id: organizationId,
      environment,
    } = data
    const eventId = derivedId('evt', session_id, visitor_id)
    const meta = { eventId, time, organizationId, environment, traceparent: traces.get(session_id) }
    return { event: { type: 'VisitorLinked', data }, meta }
  })
  return toRecords(codec, decided)
}

function splitRecord(codec: EventCodec, data: VisitorSplit): NewRecord {
  const { event_id: eventId, split_at: time, organization_id: organizationId, environment } = data
  return codec.toRecord(
    { type: 'VisitorSplit', data },
    { eventId, time, organizationId, environment },
  )
}

function orFailed<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new EventFailed(error)
  }
}

// 0 where only the profile speaks for the visitor, because that may be somebody else's. An id says that one returned.
const knownSessions = (resolved: Resolved | undefined): number =>
  resolved?.link.basis === 'deterministic' ? resolved.sessions : 0

function withVisitors(
  changed: Map<string, SessionState>,
  { visitors }: Resolution,
): SessionState[] {
  return [...changed.values()].map((state) => {
    const resolved = visitors.get(state.session_id)
    if (!resolved) return state
    const { link: visitor, sessions: visitor_sessions, isCopied } = resolved
    return { ...state, visitor, visitor_sessions, ...(isCopied && { copied_id: true }) }
  })
}
