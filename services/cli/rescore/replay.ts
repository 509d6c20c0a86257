import type { RecordedEvent } from '../../../infra/event-store/codec.ts'
import { type EventSource, readEvents } from '../../../infra/event-store/read-events.ts'
import { partitionOfKey } from '../../../infra/log/partition.ts'
import type { Position, Topic } from '../../../infra/log/port.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { isSessionEvent, type SessionEvent } from '../../scoring/session/state.ts'
import { progress } from '../progress.ts'
import { type KnownConditions, readConditions } from './conditions.ts'
import { decidedTypes, gatherDecided, newestDecisions } from './decided.ts'
import { type RecordedDecision, type Replay, startReplay } from './judge.ts'
import { startObserved } from './observed.ts'
import type { Rehearsal } from './rehearse.ts'
import { numberText } from './report.ts'
import type { RehearsedSessions } from './rows.ts'

type Observed = ReturnType<typeof startObserved>

interface Options {
  /** So many records of decisions are of the sessions that are remembered at the same time, some 3 KB each. */
  mostTogether?: number
}

// Between an event and when the log stored it.
const marginMs = 60 * 60 * 1000

/**
 * Decides anew of the observations on the log, and writes nothing. Where there are many sessions, it goes over the log more
 * than once, each time for some of them.
 */
export async function rehearseObservations(
  source: EventSource,
  those: RehearsedSessions,
  { mostTogether = 50_000 }: Options = {},
): Promise<Rehearsal> {
  const conditions = await readConditions(source)
  const observed = withProgress(startObserved(conditions.modelOf))
  const starts = await source.log.positionsSince(eventTopics.SessionScored, those.since - marginMs)
  const records = await recordsAfter(source, starts)
  for (const part of partsOf(Math.ceil(records / mostTogether), starts.length)) {
    const decided = await readDecided(source, { part, starts, those })
    await replayAll(source, { part, decided, conditions, observed })
  }
  const unknown_signals = { sessions: 0, signals: {} }
  return { ...observed.result(), ended: 0, unknown_signals }
}

async function recordsAfter({ log }: EventSource, starts: Position[]): Promise<number> {
  const ends = await log.endPositions(eventTopics.SessionScored)
  const startOf = offsetsOf(starts)
  return ends.reduce((sum, { partition, offset }) => sum + Math.max(0, offset - startOf(partition)), 0)
}

/** Some of all sessions, by their ids. */
interface Part {
  number: number
  of: number
}

/** As many as are needed, and so that each is of few partitions: of whole ones, or of a share of a single one. */
export function partsOf(needed: number, partitions: number): Part[] {
  const counts = Array.from({ length: partitions }, (_, i) => i + 1).filter((one) => partitions % one === 0)
  const of = counts.find((one) => one >= needed) ?? Math.ceil(needed / partitions) * partitions
  return Array.from({ length: of }, (_, number) => ({ number, of }))
}

const isOf = ({ number, of }: Part, key: string) => partitionOfKey(key, of) === number

/** Whether the partition, of so many, may have keys of the part: both are remainders of one hash. */
export function mayHave({ number, of }: Part, partition: number, partitions: number): boolean {
  const shared = greatestDivisor(of, partitions)
  return partition % shared === number % shared
}

const greatestDivisor = (one: number, other: number): number =>
  other === 0 ? one : greatestDivisor(other, one % other)

function offsetsOf(positions: Position[]): (partition: number) => number {
  const offsets = new Map(positions.map(({ partition, offset }) => [partition, offset]))
  return (partition) => offsets.get(partition) ?? 0
}

const readingOf = (topic: Topic, part: Part, starts: Position[]) => ({
  ...{ topic, from: offsetsOf(starts) },
  isRead: ({ partition }: { partition: number }) => mayHave(part, partition, starts.length),
})

interface Deciding {
  part: Part
  starts: Position[]
  those: RehearsedSessions
}

async function readDecided(source: EventSource, { part, starts, those }: Deciding) {
  const decided = gatherDecided(those)
  await readEvents(source, {
    ...{ ...readingOf(eventTopics.SessionScored, part, starts), types: decidedTypes },
    select: (records) => newestDecisions(records, those).filter(({ key }) => isOf(part, key)),
    handle: (events) => events.forEach(decided.add),
  })
  return decided.result()
}

interface Replaying {
  part: Part
  decided: Map<string, RecordedDecision | 'erased'>
  conditions: KnownConditions
  observed: Observed
}

async function replayAll(source: EventSource, replaying: Replaying): Promise<void> {
  const replays = startReplays(replaying)
  if (replays.oldest === Infinity) return
  const starts = await source.log.positionsSince(eventTopics.BatchReceived, replays.oldest - marginMs)
  await readEvents(source, {
    ...readingOf(eventTopics.BatchReceived, replaying.part, starts),
    select: (records) => records.filter(({ key }) => replays.isWaiting(key)),
    handle: (events) => events.filter(isSessionEvent).forEach(replays.apply),
  })
  replays.end()
}

function startReplays({ decided, conditions, observed }: Replaying) {
  const waiting = new Map<string, RecordedDecision>()
  const begun = new Map<string, Replay>()
  for (const [id, recorded] of decided) {
    if (recorded === 'erased') observed.leaveOut(recorded)
    else waiting.set(id, recorded)
  }

  function begin(recorded: RecordedDecision): Replay {
    const { session_id, organization_id, evaluated_at } = recorded.row
    const replay = startReplay(recorded, conditions.at(organization_id, evaluated_at))
    begun.set(session_id, replay)
    return replay
  }

  function apply(event: RecordedEvent & SessionEvent): void {
    const id = event.data.session_id
    const recorded = waiting.get(id)
    if (!recorded) return
    const replay = begun.get(id) ?? begin(recorded)
    const outcome = event.unreadable === undefined ? replay.apply(event) : 'erased'
    if (outcome === undefined) return
    if (typeof outcome === 'string') observed.leaveOut(outcome)
    else observed.add(recorded, outcome)
    waiting.delete(id)
    begun.delete(id)
  }

  function end(): void {
    for (const id of waiting.keys()) observed.leaveOut(begun.has(id) ? 'incomplete' : 'expired')
  }

  const oldest = [...waiting.values()].reduce((least, { openedAt }) => Math.min(least, openedAt), Infinity)
  return { oldest, isWaiting: (id: string) => waiting.has(id), apply, end }
}

/** Says on standard error how many sessions are done. */
function withProgress(observed: Observed): Observed {
  const show = progress()
  let sessions = 0
  return {
    ...observed,
    add(recorded, judged) {
      observed.add(recorded, judged)
      sessions++
      if (sessions % 100 === 0) show(`${numberText(sessions)} sessions`)
    },
  }
}
