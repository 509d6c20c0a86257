import type pg from 'pg'
import type { EventCodec, RecordedEvent, TrafficEvent } from '../../infra/event-store/codec.ts'
import type { DataKeys } from '../../infra/event-store/data-keys.ts'
import type { DecidedEvent } from '../../infra/event-store/decide.ts'
import { dueOf, type EventBatch, EventFailed } from '../../infra/event-store/event-batch.ts'
import { type Clock, derivedId } from '../../infra/ids.ts'
import type { NetworkSource } from '../../infra/ip/network.ts'
import type { EventLog, NewRecord, Position } from '../../infra/log/port.ts'
import type { Part } from '../../infra/postgres/arrays.ts'
import { shortTransaction, type Tx } from '../../infra/postgres/pool.ts'
import { type Breathe, createBreather } from '../../infra/timing.ts'
import type { SimulationKey } from '../../infra/wire/collect/simulation.ts'
import { countingKeyId } from '../../projections/answers/digests.ts'
import type { CountedSession } from '../../projections/repeats/counted.ts'
import type { NearRepeats } from '../../projections/repeats/near-counts.ts'
import type { RepeatCounter } from '../../projections/repeats/queries.ts'
import type { Repeats, VisitorLinked, VisitorSplit } from '../../schemas/events.ts'
import { type Draft, type Drafts, startDrafting } from './decide.ts'
import { scoredEvent } from './scored-event.ts'
import type { LearnedAnswers } from './session/answers.ts'
import type { AllowsMinimal } from './session/facts.ts'
import { isSessionEvent, type SessionState } from './session/state.ts'
import { withHistory } from './signals/score.ts'
import {
  noteWritten,
  type Opened,
  openingStatements,
  readOpened,
  saveOffsets,
  saveStates,
  type WrittenStates,
  writtenOf,
} from './store.ts'
import { type Resolution, type Resolved, resolveVisitors } from './visitors/resolve.ts'
import type { RecordedVisitor } from './visitors/split.ts'

interface ScoreDeps {
  log: EventLog
  // What visitors and networks are counted under.
  dataKeys: Pick<DataKeys, 'ensure' | 'get'>
  pool: pg.Pool
  codec: EventCodec
  clock: Clock
  network: NetworkSource
  learned: LearnedAnswers
  simulationKey?: SimulationKey | undefined
  allowsMinimal?: AllowsMinimal | undefined
}

interface ScoreBatches {
  batches: EventBatch[]
  findRecorded: (decisionIds: string[]) => Promise<Map<string, RecordedVisitor>>
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
  const { next, ...made } = await shortTransaction(deps.pool, {
    first: openingStatements({ places, sessionIds, known }),
    work: (tx, rows) => scoreIn({ tx, opened: readOpened(rows, known) }, deps, work),
  })
  noteWritten(written, made)
  return next
}

// Of an erased session nothing more is decided, nor of one whose key is lost: what it observed is unreadable.
const isScored = (event: RecordedEvent, erased: Set<string>): boolean =>
  event.closed === undefined && !(isSessionEvent(event) && erased.has(event.data.session_id))

interface Scored {
  result: { next: Position[]; states: SessionState[]; transactionId: string }
  writes: Part[]
}

async function scoreIn(
  { tx, opened }: { tx: Tx; opened: Opened },
  deps: ScoreDeps,
  { batches, findRecorded, countRepeats }: ScoreBatches,
): Promise<Scored> {
  const { offsets: stored, transactionId, states: known, erased } = opened
  const due = batches.map((batch) => ({ ...batch, ...dueOf(batch, stored.get(batch.partition) ?? 0) }))
  const moved = due.filter((batch) => batch.next > (stored.get(batch.partition) ?? 0))
  const next = due.map(({ topic, partition, next: offset }) => ({ topic, partition, offset }))
  if (moved.length === 0) return { result: { next, states: [], transactionId }, writes: [] }
  const startedAt = deps.clock()
  const breathe = createBreather()
  const events = moved.flatMap((batch) => batch.events).filter((event) => isScored(event, erased))
  const { changed, drafts } = await draft({ deps, events, known, now: startedAt, breathe })
  const recorded = await findRecorded(drafts.map(({ trigger }) => trigger.decisionId))
  const resolution = await resolveVisitors({ tx, drafts, recorded, now: startedAt })
  const counted = await countFor(drafts, resolution, (asked) => countRepeats(tx, asked))
  const records = await encode(deps, { drafts: counted, resolution, startedAt, breathe })
  const links = await linkRecords(deps.codec, resolution.linked, drafts)
  const splits = resolution.splits.map((data) => splitRecord(deps.codec, data))
  if (records.length > 0) await deps.log.append([...splits, ...records, ...links])
  const offsets = moved.map(({ topic, partition, next: next_offset, timeBefore }) => ({
    topic,
    partition,
    next_offset,
    log_time: timeBefore(next_offset),
  }))
  const states = linked(changed, resolution)
  const writes = [
    ...resolution.index.save(),
    ...saveStates({ states, partitions: partitionsOf(events), known }),
    ...saveOffsets(offsets),
  ]
  return { result: { next, states, transactionId }, writes }
}

const sessionsOf = (batches: EventBatch[]): string[] => [
  ...new Set(
    batches.flatMap(({ events }) => events.filter(isSessionEvent).map(({ data }) => data.session_id)),
  ),
]

const partitionsOf = (events: RecordedEvent[]): Map<string, number> =>
  new Map(events.filter(isSessionEvent).map(({ data, position }) => [data.session_id, position.partition]))

interface ToDraft {
  deps: ScoreDeps
  events: RecordedEvent[]
  known: Map<string, SessionState>
  now: number
  breathe: Breathe
}

async function draft({ deps, events, known, now, breathe }: ToDraft): Promise<Drafts> {
  const mine = events.filter(isSessionEvent)
  const { apply, changed, drafts } = startDrafting({
    known,
    network: deps.network,
    learned: deps.learned,
    simulationKey: deps.simulationKey,
    allowsMinimal: deps.allowsMinimal,
    now,
  })
  for (const event of mine) {
    orFailed(() => apply(event, event.meta.traceparent))
    await breathe()
  }
  return { changed, drafts }
}

type Counted = Draft & { repeats: Repeats | null; near: NearRepeats | null }

// What others did is looked up when a session hands off or ends: a count costs as much as the rest of a decision.
async function countFor(
  drafts: Draft[],
  { visitors }: Resolution,
  count: (asked: CountedSession[]) => ReturnType<RepeatCounter>,
): Promise<Counted[]> {
  const final = drafts.filter(({ trigger }) => trigger.final)
  const asked = final.map(({ state, trigger, hashes }) => ({
    session_id: state.session_id,
    organization_id: state.organization_id,
    environment: state.environment,
    opened_at: state.created_at,
    at: trigger.at,
    ip_address: state.ip_address,
    visitor_id: visitors.get(state.session_id)?.link.id ?? null,
    ...hashes,
  }))
  const counts = asked.length > 0 ? await count(asked) : []
  const counted = new Map(final.map((draft, i) => [draft, counts[i] ?? null]))
  return drafts.map((draft) => {
    const { repeats = null, near = null } = counted.get(draft) ?? {}
    return { ...draft, repeats, near }
  })
}

interface ToEncode {
  drafts: Counted[]
  resolution: Resolution
  startedAt: number
  breathe: Breathe
}

async function encode({ codec, clock, dataKeys }: ScoreDeps, todo: ToEncode): Promise<NewRecord[]> {
  const evaluatedAt = clock()
  const countingKey = todo.drafts.length > 0 ? await countingKeyOf(dataKeys, evaluatedAt) : null
  const durationMs = Math.max(0, Math.round(evaluatedAt - todo.startedAt))
  const decided: DecidedEvent<TrafficEvent>[] = []
  for (const { state, trigger, traceparent, evaluation: own, hashes, repeats, near } of todo.drafts) {
    const resolved: Partial<Resolved> = todo.resolution.visitors.get(state.session_id) ?? {}
    const scored = orFailed(() => {
      const { link: visitor = null, isCopied } = resolved
      const evaluation = withHistory(own, {
        visitorSessions: sessionsShown(resolved),
        isCopied,
        repeats,
        near,
      })
      const about = { state, trigger, traceparent, evaluation, visitor, hashes, countingKey }
      return scoredEvent({ ...about, evaluatedAt, durationMs })
    })
    decided.push(scored)
    await todo.breathe()
  }
  return toRecords(codec, decided)
}

async function countingKeyOf(dataKeys: ScoreDeps['dataKeys'], now: number) {
  const id = countingKeyId(now)
  await dataKeys.ensure([id])
  return dataKeys.get(id)
}

async function toRecords(codec: EventCodec, decided: DecidedEvent<TrafficEvent>[]): Promise<NewRecord[]> {
  await codec.prepare(decided.map(({ event }) => event))
  return decided.map(({ event, meta }) => orFailed(() => codec.toRecord(event, meta)))
}

function linkRecords(codec: EventCodec, linked: VisitorLinked[], drafts: Draft[]): Promise<NewRecord[]> {
  const traces = new Map(drafts.map(({ state, traceparent }) => [state.session_id, traceparent]))
  const decided = linked.map((data): DecidedEvent<TrafficEvent> => {
    const { session_id, visitor_id, linked_at: time, organization_id: organizationId, environment } = data
    const eventId = derivedId('evt', session_id, visitor_id)
    const meta = { eventId, time, organizationId, environment, traceparent: traces.get(session_id) }
    return { event: { type: 'VisitorLinked', data }, meta }
  })
  return toRecords(codec, decided)
}

function splitRecord(codec: EventCodec, data: VisitorSplit): NewRecord {
  const { event_id: eventId, split_at: time, organization_id: organizationId, environment } = data
  return codec.toRecord({ type: 'VisitorSplit', data }, { eventId, time, organizationId, environment })
}

function orFailed<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new EventFailed(error)
  }
}

// Who only looks like somebody may be somebody else: a kept id alone says that a visitor returned.
const sessionsShown = ({ link, sessions = 0 }: Partial<Resolved>): number =>
  link?.basis === 'deterministic' ? sessions : 0

function linked(changed: Map<string, SessionState>, { visitors }: Resolution): SessionState[] {
  return [...changed.values()].map((state) => {
    const resolved = visitors.get(state.session_id)
    if (!resolved) return state
    const { link: visitor, sessions: visitor_sessions, isCopied } = resolved
    return { ...state, visitor, visitor_sessions, ...(isCopied && { copied_id: true }) }
  })
}
