import { hash } from 'node:crypto'
import { bankNumberOf } from '../../infra/challenges/bank.ts'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { memoized } from '../../infra/lru.ts'
import type { Part } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import {
  column,
  foreign,
  loadRows,
  primaryKey,
  type RowOf,
  saveRows,
  table,
} from '../../infra/postgres/table.ts'
import {
  type EngineAnswersLearned,
  type Environment,
  eventTopics,
  type GivenAnswers,
  type SessionScored,
} from '../../schemas/events.ts'
import { answerDigest, classDigest, handshakeQuestion } from './digests.ts'

/** One answer that browsers of a class gave to one question or drawing. */
export const answers = table('answers', {
  id: primaryKey(column.id(), 'answer_id'),
  environment: column.text<Environment>(),
  /** `classDigest` of an engine and its version, of what draws, or of a handshake. */
  class: foreign(column.text()),
  /** The id of a question, `canvas` and the seed of a drawing, or `handshake`: which engine begins TLS so. */
  question: column.text(),
  /** `answerDigest` of it. */
  answer: foreign(column.text()),
  /** Visitors that gave it, each with the tag of the organization: the 32 smallest slots (see `slotOf`), ascending. */
  visitors: column.json<string[]>(),
  /** Visitors and networks by organization, of the eight smallest tags, as many as show that the organization agrees. */
  organizations: column.json<Record<string, Seen>>(),
  /** Whom a browser of theirs taught it: the tag of an organization, or `everybody` for an operator's browser. */
  taught: column.json<string[]>(),
})
export type AnswerRow = RowOf<typeof answers>

/** The smallest slots of visitors, hashes of networks and hours since 1970 at an organization, ascending. */
export interface Seen {
  visitors: string[]
  networks: string[]
  hours: number[]
}

/** Different hours in which an answer has to be given before it counts. */
export const hoursNeeded = 6
const mostVisitors = 32
// As many as an organization needs to learn by itself.
const mostNetworks = 10
const mostOrganizations = 8
export const allEnvironments: readonly Environment[] = ['live', 'test']

export const answersProjection: Projection = {
  name: 'answers',
  version: 3,
  topics: [eventTopics.SessionScored, eventTopics.EngineAnswersLearned],
  types: new Set(['SessionScored', 'EngineAnswersLearned']),
  tables: [answers.name],
  ddl: answers.ddl,
  // Progress is read by question.
  indexes: 'create index on answers (question);',
  appliedIn: [],
  gatherMs: 2000,
  apply,
  // Sessions of all partitions give the same answers, and a row is read before it is written.
  isExclusive: () => true,
}

// The smallest of all hashes are the same in whatever order events come, and however often.
async function apply(tx: Tx, events: RecordedEvent[]): Promise<Part[]> {
  const merged = mergeAnswers(events.flatMap(rowsOf))
  const stored = await loadRows(tx, answers, { by: 'id', ids: [...merged.keys()] })
  const changed = [...merged.values()].flatMap((row) => {
    const known = stored.get(row.id)
    const next = known ? together(known, row) : row
    return known && isSame(known, next) ? [] : [next]
  })
  return saveRows(answers, changed)
}

function rowsOf(event: RecordedEvent): AnswerRow[] {
  if (event.type === 'SessionScored') return answerRows(event.data)
  return event.type === 'EngineAnswersLearned' ? learnedRows(event.data) : []
}

/** In `taught`, for the browser of an operator. */
export const everybody = '*'

/** Such a browser answers for both environments. */
function learnedRows({
  organization_id,
  engine_family,
  answers: learned,
}: EngineAnswersLearned): AnswerRow[] {
  const tag = organization_id === null ? everybody : organizationTag(organization_id)
  const by = { visitors: [], organizations: {}, taught: [tag] }
  return allEnvironments.flatMap((environment) =>
    Object.entries(learned).map(([question, answer]) => ({
      ...answerOf({ environment, class: classDigest(engine_family), question, answer }),
      ...by,
    })),
  )
}

/** Of sessions that nothing else speaks against, and of a visitor: many sessions of one count once. */
export function answerRows(data: SessionScored): AnswerRow[] {
  const said = data.given_answers
  if (!said) return []
  const { engine, engine_family, canvas_class, canvas_seed, canvas_answer } = said
  const { environment, organization_id } = data
  const tag = organizationTag(organization_id)
  const visitor = `${slotOf(data, said)}${said.visitor_digest.slice(0, halfLength)}`
  const seen = {
    visitors: [visitor],
    networks: [said.network_digest.slice(0, digestLength)],
    hours: [Math.floor(data.evaluated_at / hourMs)],
  }
  const by = { visitors: [`${visitor}${tag}`], organizations: { [tag]: seen }, taught: [] }
  const row = (of: string, question: string, answer: string): AnswerRow => ({
    ...answerOf({ environment, class: of, question, answer }),
    ...by,
  })
  const { handshake } = said
  const spoken =
    handshake && engine_family
      ? [row(handshake, handshakeQuestion, answerDigest(engine_family))]
      : []
  if (!said.is_consistent) return spoken
  const family = engine_family && classDigest(engine_family)
  const toQuestions = Object.entries(said.engine_answers).flatMap(([id, answer]) => {
    const of = bankNumberOf(Number(id)) === undefined ? engine : family
    return of === null ? [] : [row(of, id, answer)]
  })
  const isDrawn = canvas_class !== null && canvas_seed !== null && canvas_answer !== null
  const drawn = isDrawn ? [row(canvas_class, `canvas ${canvas_seed}`, canvas_answer)] : []
  return [...spoken, ...toQuestions, ...drawn]
}

const hourMs = 60 * 60 * 1000
const dayMs = 24 * hourMs
/** Characters of the hash of a network. */
const digestLength = 12
// Characters of a slot, and of the hash of the visitor in it.
const halfLength = 8

/**
 * A network has two slots a day at each organization, and in each slot one visitor counts. So a network teaches with two
 * visitors a day at most, however many it sends.
 */
function slotOf(
  { organization_id, evaluated_at }: Pick<SessionScored, 'organization_id' | 'evaluated_at'>,
  { network_digest, visitor_digest }: Pick<GivenAnswers, 'network_digest' | 'visitor_digest'>,
): string {
  const half = Number.parseInt(visitor_digest.slice(-1), 16) % 2
  const day = Math.floor(evaluated_at / dayMs)
  return digest('slot', organization_id, network_digest, String(day), String(half)).slice(
    0,
    halfLength,
  )
}

/** Stands behind each hash of a visitor or network that was seen there. */
export const organizationTag = memoized(2000, (organizationId: string) =>
  digest('organization', organizationId).slice(0, 6),
)

const answerOf = (of: Pick<AnswerRow, 'environment' | 'class' | 'question' | 'answer'>) => ({
  id: digest(of.environment, of.class, of.question, of.answer),
  ...of,
})

function digest(...parts: string[]): string {
  return hash('sha256', parts.join('\0')).slice(0, 16)
}

/** Answers of several sessions, by the id of the row. */
export function mergeAnswers(rows: AnswerRow[]): Map<string, AnswerRow> {
  const merged = new Map<string, AnswerRow>()
  for (const row of rows) {
    const known = merged.get(row.id)
    merged.set(row.id, known ? together(known, row) : row)
  }
  return merged
}

function together(one: AnswerRow, other: AnswerRow): AnswerRow {
  return {
    ...one,
    visitors: smallestSlots([...one.visitors, ...other.visitors], mostVisitors),
    organizations: seenTogether(one.organizations, other.organizations),
    taught: [...new Set([...one.taught, ...other.taught])].sort(),
  }
}

// A tag that gave way to eight smaller ones never comes back, so the order of events makes no difference.
function seenTogether(one: AnswerRow['organizations'], other: AnswerRow['organizations']) {
  const tags = smallest([...Object.keys(one), ...Object.keys(other)], mostOrganizations)
  return Object.fromEntries(
    tags.map((tag) => {
      const [mine, others] = [one[tag] ?? nobody, other[tag] ?? nobody]
      const seen: Seen = {
        visitors: smallestSlots([...mine.visitors, ...others.visitors], mostVisitors),
        networks: smallest([...mine.networks, ...others.networks], mostNetworks),
        hours: [...new Set([...mine.hours, ...others.hours])]
          .sort((a, b) => a - b)
          .slice(0, hoursNeeded),
      }
      return [tag, seen]
    }),
  )
}

const nobody: Seen = { visitors: [], networks: [], hours: [] }

const smallest = (hashes: string[], count: number) => [...new Set(hashes)].sort().slice(0, count)

// Keeps the visitor with the smallest hash of each slot, so that the order of events makes no difference.
function smallestSlots(visitors: string[], count: number): string[] {
  const sorted = [...new Set(visitors)].sort()
  const slotAt = (i: number) => sorted[i]?.slice(0, halfLength)
  return sorted.filter((_, i) => i === 0 || slotAt(i) !== slotAt(i - 1)).slice(0, count)
}

const isSame = (one: AnswerRow, other: AnswerRow) =>
  one.taught.join() === other.taught.join() &&
  one.visitors.join() === other.visitors.join() &&
  JSON.stringify(one.organizations) === JSON.stringify(other.organizations)

/** Counts visitors once each, and two a day per network: exactly below 32 slots, by an estimate beyond. */
export function distinct(slots: string[]): number {
  const visitors = new Set(slots.map((one) => one.slice(halfLength, 2 * halfLength))).size
  const largest = slots.at(-1)
  if (slots.length < mostVisitors || largest === undefined) return visitors
  const all =
    ((mostVisitors - 1) * 2 ** (4 * halfLength)) / Number.parseInt(largest.slice(0, halfLength), 16)
  return Math.round((all * visitors) / slots.length)
}
