import type pg from 'pg'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import type { DataKeys } from '../../infra/event-store/data-keys.ts'
import type { DecidedEvent } from '../../infra/event-store/decide.ts'
import type { RecordedEvent, TrafficEvent } from '../../infra/event-store/event.ts'
import { type EventBatch, EventFailed, eventsToApply } from '../../infra/event-store/event-batch.ts'
import { type Clock, derivedId } from '../../infra/ids.ts'
import type { EventLog, NewRecord, Position } from '../../infra/log/port.ts'
import type { Cte } from '../../infra/postgres/arrays.ts'
import { pipelinedTransaction, type Tx } from '../../infra/postgres/pool.ts'
import { saveRows } from '../../infra/postgres/table.ts'
import { createYielder, type YieldToEventLoop } from '../../infra/timing.ts'
import { digestKeyId } from '../../projections/answers/digests.ts'
import type { CountedSession } from '../../projections/repeats/counted-sessions.ts'
import type { NearRepeats } from '../../projections/repeats/near-repeats.ts'
import type { RepeatCounter } from '../../projections/repeats/queries.ts'
import type { Repeats, SessionScored, VisitorLinked, VisitorSplit } from '../../schemas/events.ts'
import type { AttestationVerifier } from './attestation/devices.ts'
import {
  type AttestationOutcomes,
  createAttestationEnricher,
  judgeAttestations,
} from './attestation/outcomes.ts'
import { createDecider, type Decision, type DecisionSources } from './decide.ts'
import type { Lookups } from './identity/lookups.ts'
import {
  createLookupEnricher,
  type LookupOutcomes,
  pendingLookups,
  resolveLookups,
} from './identity/outcomes.ts'
import type { ModelsAt } from './model/follow.ts'
import type { ModelOf } from './model/in-force.ts'
import { scoredEvent } from './scored-event.ts'
import { isSessionEvent, type SessionState } from './session/state.ts'
import { withHistory } from './signals/evaluate.ts'
import {
  type BatchStart,
  batchStartOf,
  cachedStatesOf,
  cacheWrittenStates,
  lockAndLoadStatements,
  type StateCache,
  saveStates,
} from './store.ts'
import { offsets } from './tables.ts'
import { type Resolution, type ResolvedVisitor, resolveVisitors } from './visitors/resolve.ts'
import type { DecisionRef, RecordedDecisions } from './visitors/split.ts'

export interface ScoreDeps extends DecisionSources {
  log: EventLog
  /** Stores this month's key for counting visitors and networks by their digests. */
  dataKeys: Pick<DataKeys, 'ensure' | 'get'>
  pool: pg.Pool
  codec: EventCodec
  clock: Clock
  /** Default: always the standard model. */
  modelsAt?: ModelsAt | undefined
  /** Called for each decision when it is appended for the first time. */
  onDecided?: ((decision: SessionScored) => void) | undefined
  /** Default: no agent is looked up. */
  lookups?: Pick<Lookups, 'request'> | undefined
  /** Default: attestations are ignored. */
  attestationVerifier?: AttestationVerifier | undefined
}

interface BatchWork {
  batches: EventBatch[]
  findRecorded: (decisions: DecisionRef[]) => Promise<RecordedDecisions>
  countRepeats: RepeatCounter
  stateCache: StateCache
}

/**
 * Scores the events of several partitions and returns the next offset of each. The order makes a crash harmless:
 * 1. Read: lock the offset rows, so that no other process scores these partitions, and load what decisions need.
 * 2. Decide about each session, then add its visitor and repeat counts.
 * 3. Append the decisions. Their ids derive from the events, so a repeat adds nothing.
 * 4. Persist states, visitors and offsets in one commit. After a crash before it, scoring repeats from 1.
 * Throws EventFailed if a decision about an event can't be made or encoded.
 */
export async function scoreBatches(deps: ScoreDeps, work: BatchWork): Promise<Position[]> {
  const { batches, stateCache } = work
  const sessionIds = sessionIdsIn(batches)
  const cached = cachedStatesOf(stateCache, sessionIds)
  const { next, ...committed } = await pipelinedTransaction(deps.pool, {
    openingStatements: lockAndLoadStatements({ partitions: batches, sessionIds, cached }),
    work: (tx, rows) => scoreInTransaction({ tx, start: batchStartOf(rows, cached) }, deps, work),
  })
  cacheWrittenStates(stateCache, committed)
  return next
}

interface ScoredTransaction {
  result: { next: Position[]; states: SessionState[]; transactionId: string }
  writes: Cte[]
}

async function scoreInTransaction(
  { tx, start }: { tx: Tx; start: BatchStart },
  deps: ScoreDeps,
  work: BatchWork,
): Promise<ScoredTransaction> {
  const { offsets: storedOffsets, transactionId } = start
  const storedOf = (batch: EventBatch) => storedOffsets.get(batch.partition) ?? 0
  const due = work.batches.map((batch) => ({ ...batch, ...eventsToApply(batch, storedOf(batch)) }))
  const next = due.map(({ topic, partition, next: offset }) => ({ topic, partition, offset }))
  const unscored = due.filter((batch) => batch.next > storedOf(batch))
  if (unscored.length === 0) return { result: { next, states: [], transactionId }, writes: [] }
  const inputs = await readInputs(tx, { batches: unscored, start }, deps)
  const decided = await decide(tx, inputs, { deps, work })
  await publish(deps, inputs, decided)
  const states = withVisitors(decided.newStates, decided.resolution)
  const writes = collectWrites(unscored, inputs, { ...decided, states })
  return { result: { next, states, transactionId }, writes }
}

interface DecisionInputs {
  startedAt: number
  events: RecordedEvent[]
  /** Stored states by session id. */
  states: Map<string, SessionState>
  modelOf: ModelOf | undefined
  lookups: LookupOutcomes
  attestations: AttestationOutcomes
}

// 1. Reads what decisions need besides states: scoring models, agent lookups and attestations.
async function readInputs(
  tx: Tx,
  { batches, start }: { batches: EventBatch[]; start: BatchStart },
  { clock, modelsAt, attestationVerifier }: ScoreDeps,
): Promise<DecisionInputs> {
  const { states, erased } = start
  const events = batches.flatMap((batch) => batch.events).filter((event) => canRead(event, erased))
  const startedAt = clock()
  const modelOf = await modelsAt?.(startedAt, tx)
  const lookups = await resolveLookups(tx, pendingLookups(events, states), startedAt)
  const attestations = await judgeAttestations(tx, { events, states }, attestationVerifier)
  return { startedAt, events, states, modelOf, lookups, attestations }
}

// The observations of a session that was erased or whose key is lost can't be read, so it gets no further decision.
const canRead = (event: RecordedEvent, erased: Set<string>): boolean =>
  event.unreadable === undefined && !(isSessionEvent(event) && erased.has(event.data.session_id))

interface DecidedBatch {
  /** By session id. */
  newStates: Map<string, SessionState>
  decisions: Decision[]
  recorded: RecordedDecisions
  resolution: Resolution
  scored: DecidedEvent<TrafficEvent>[]
}

// 2. Decides about each session by itself, then adds its visitor and repeat counts.
async function decide(
  tx: Tx,
  inputs: DecisionInputs,
  { deps, work }: { deps: ScoreDeps; work: BatchWork },
): Promise<DecidedBatch> {
  const yieldToEventLoop = createYielder()
  const { startedAt } = inputs
  const { newStates, decisions } = await decideEach(inputs, deps, yieldToEventLoop)
  const recorded = await work.findRecorded(decisions.map(refOf))
  const unfinished = decisions.filter(
    ({ trigger, state }) => trigger.final || !recorded.final.has(state.session_id),
  )
  const resolution = await resolveVisitors(tx, { decisions: unfinished, recorded, now: startedAt })
  const countedDecisions = await withCounts(unfinished, resolution, (sessions) =>
    work.countRepeats(tx, sessions),
  )
  const scored = await scoredEvents(deps, {
    decisions: countedDecisions,
    resolution,
    startedAt,
    yieldToEventLoop,
  })
  return { newStates, decisions, recorded, resolution, scored }
}

async function decideEach(
  { startedAt, events, states, modelOf, lookups, attestations }: DecisionInputs,
  deps: ScoreDeps,
  yieldToEventLoop: YieldToEventLoop,
): Promise<Pick<DecidedBatch, 'newStates' | 'decisions'>> {
  const enrichers = [createLookupEnricher(lookups), createAttestationEnricher(attestations)]
  const decider = createDecider(states, {
    ...deps,
    modelOf,
    now: startedAt,
    handingOff: sessionsHandingOff(events),
    enrichState: (state, event) => enrichers.reduce((added, enrich) => enrich(added, event), state),
  })
  const decisions: Decision[] = []
  for (const event of events.filter(isSessionEvent)) {
    const decision = asEventFailure(() => decider.apply(event, event.meta.traceparent))
    if (decision) decisions.push(decision)
    await yieldToEventLoop()
  }
  return { newStates: decider.newStates, decisions }
}

// 3. Appends splits, decisions and links, in this order, reports the decisions, and requests lookups for later ones.
async function publish(
  deps: ScoreDeps,
  { lookups }: DecisionInputs,
  { decisions, recorded, resolution, scored }: DecidedBatch,
): Promise<void> {
  const records = await toRecords(deps.codec, scored)
  const links = await linkRecords(deps.codec, resolution.linked, decisions)
  const splits = resolution.splits.map((data) => splitRecord(deps.codec, data))
  if (records.length > 0) await deps.log.append([...splits, ...records, ...links])
  // After a crash the same decisions are appended again, but not reported again.
  for (const { event, meta } of scored)
    if (event.type === 'SessionScored' && !recorded.decisionIds.has(meta.eventId))
      deps.onDecided?.(event.data)
  // Request before the commit: if it fails, the batch is scored again and requests the same lookups.
  for (const request of lookups.requests) deps.lookups?.request(request)
}

// 4. Returns the writes of visitors, devices, states and offsets, which the caller commits together.
function collectWrites(
  batches: (EventBatch & { next: number })[],
  { attestations, events, states: storedStates }: DecisionInputs,
  { resolution, states }: { resolution: Resolution; states: SessionState[] },
): Cte[] {
  const nextOffsets = batches.map(({ topic, partition, next: next_offset, timeBefore }) => ({
    topic,
    partition,
    next_offset,
    log_time: timeBefore(next_offset),
  }))
  return [
    ...resolution.index.pendingWrites(),
    ...attestations.pendingWrites(),
    ...saveStates({ states, partitions: partitionsIn(events), storedStates }),
    ...saveRows(offsets, nextOffsets),
  ]
}

const refOf = ({ state, trigger: { decisionId } }: Decision): DecisionRef => ({
  decisionId,
  sessionId: state.session_id,
})

function sessionIdsIn(batches: EventBatch[]): string[] {
  const events = batches.flatMap((batch) => batch.events).filter(isSessionEvent)
  return [...new Set(events.map(({ data }) => data.session_id))]
}

const sessionsHandingOff = (events: RecordedEvent[]): Set<string> =>
  new Set(events.flatMap(({ type, data }) => (type === 'ResultRequested' ? [data.session_id] : [])))

function partitionsIn(recorded: RecordedEvent[]): Map<string, number> {
  const events = recorded.filter(isSessionEvent)
  return new Map(events.map(({ data, position }) => [data.session_id, position.partition]))
}

type CountedDecision = Decision & { repeats: Repeats | null; near: NearRepeats | null }

// Repeat counts cost as much as the rest of a decision, so compute them only for final decisions.
async function withCounts(
  decisions: Decision[],
  { visitors }: Resolution,
  countRepeats: (sessions: CountedSession[]) => ReturnType<RepeatCounter>,
): Promise<CountedDecision[]> {
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
  const counts = sessions.length > 0 ? await countRepeats(sessions) : []
  const countsOf = new Map(final.map((decision, i) => [decision, counts[i] ?? null]))
  return decisions.map((decision) => {
    const { repeats = null, near = null } = countsOf.get(decision) ?? {}
    return { ...decision, repeats, near }
  })
}

interface ScoringInputs {
  decisions: CountedDecision[]
  resolution: Resolution
  startedAt: number
  yieldToEventLoop: YieldToEventLoop
}

async function scoredEvents(
  { clock, dataKeys }: ScoreDeps,
  { decisions, resolution, startedAt, yieldToEventLoop }: ScoringInputs,
): Promise<DecidedEvent<TrafficEvent>[]> {
  const now = clock()
  const countingKey = decisions.length > 0 ? await countingKeyOf(dataKeys, now) : null
  const durationMs = Math.max(0, Math.round(now - startedAt))
  const scored: DecidedEvent<TrafficEvent>[] = []
  for (const { evaluation: ownEvaluation, modelUntil, repeats, near, ...decision } of decisions) {
    const resolved = resolution.visitors.get(decision.state.session_id)
    // The batch uses the model in force when it started, so clamp the time to that model's period.
    const evaluatedAt = Math.min(now, modelUntil - 1)
    const { link: visitor = null, hasCopiedId } = resolved ?? {}
    const history = { visitorSessions: provenSessions(resolved), hasCopiedId, repeats, near }
    const event = asEventFailure(() => {
      const evaluation = withHistory(ownEvaluation, history)
      return scoredEvent({ ...decision, evaluation, visitor, countingKey, evaluatedAt, durationMs })
    })
    scored.push(event)
    await yieldToEventLoop()
  }
  return scored
}

async function countingKeyOf(dataKeys: ScoreDeps['dataKeys'], now: number) {
  const id = digestKeyId(now)
  await dataKeys.ensure([id])
  return dataKeys.get(id)
}

async function toRecords(
  codec: EventCodec,
  decided: DecidedEvent<TrafficEvent>[],
): Promise<NewRecord[]> {
  await codec.prepareKeys(decided.map(({ event }) => event))
  return decided.map(({ event, meta }) => asEventFailure(() => codec.toRecord(event, meta)))
}

function linkRecords(
  codec: EventCodec,
  linked: VisitorLinked[],
  decisions: Decision[],
): Promise<NewRecord[]> {
  const traces = new Map(decisions.map(({ state, traceparent }) => [state.session_id, traceparent]))
  const decided = linked.map((data): DecidedEvent<TrafficEvent> => {
    const { session_id, visitor_id, linked_at: time, environment } = data
    const { organization_id: organizationId } = data
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

function asEventFailure<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new EventFailed(error)
  }
}

// 0 for a fingerprint match, which may be another person's device. Only a stored id proves that a visitor returned.
const provenSessions = (resolved: ResolvedVisitor | undefined): number =>
  resolved?.link.basis === 'deterministic' ? resolved.sessions : 0

function withVisitors(
  newStates: Map<string, SessionState>,
  { visitors }: Resolution,
): SessionState[] {
  return [...newStates.values()].map((state) => {
    const resolved = visitors.get(state.session_id)
    if (!resolved) return state
    const { link: visitor, sessions: visitor_sessions, hasCopiedId } = resolved
    return { ...state, visitor, visitor_sessions, ...(hasCopiedId && { copied_id: true }) }
  })
}
