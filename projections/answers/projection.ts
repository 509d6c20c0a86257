import { hash } from 'node:crypto'
import { bankNumberOf } from '../../infra/challenges/bank.ts'
import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
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
  /**
   * The 32 smallest hashes of visitors that gave it, ascending, each with the tag of the organization. `distinct` counts
   * by them.
   */
  visitors: column.json<string[]>(),
  /** Visitors and networks by organization, of the eight smallest tags, as many as show that the organization agrees. */
  organizations: column.json<Record<string, Seen>>(),
  /** Whether a browser of the operator gave it. */
  by_operator: column.boolean(),
})
export type AnswerRow = RowOf<typeof answers>

/** The smallest hashes of visitors and networks that were seen at an organization, ascending. */
export interface Seen {
  visitors: string[]
  networks: string[]
}

const mostVisitors = 32
// As many as an organization needs to learn by itself.
const mostOfOrganization = { visitors: 20, networks: 10 }
const mostOrganizations = 8
const environments: readonly Environment[] = ['live', 'test']

export const answersProjection: Projection = {
  name: 'answers',
  version: 1,
  topics: [eventTopics.SessionScored, eventTopics.EngineAnswersLearned],
  types: new Set(['SessionScored', 'EngineAnswersLearned']),
  tables: [answers.name],
  ddl: answers.ddl,
  indexes: '',
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

/** An operator's browser answers for both environments. */
function learnedRows({ engine_family, answers: learned }: EngineAnswersLearned): AnswerRow[] {
  const by = { visitors: [], organizations: {}, by_operator: true }
  return environments.flatMap((environment) =>
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
  const visitor = said.visitor_digest.slice(0, digestLength)
  const seen = { visitors: [visitor], networks: [said.network_digest.slice(0, digestLength)] }
  const by = { visitors: [`${visitor}${tag}`], organizations: { [tag]: seen }, by_operator: false }
  const row = (of: string, question: string, answer: string): AnswerRow => ({
    ...answerOf({ environment, class: of, question, answer }),
    ...by,
  })
  const { handshake } = said
  const spoken =
    handshake && engine_family ? [row(handshake, handshakeQuestion, answerDigest(engine_family))] : []
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

/** Characters of a hash of a visitor or network. */
export const digestLength = 12

/** Stands behind each hash of a visitor or network that was seen there. */
export const organizationTag = (organizationId: string): string =>
  digest('organization', organizationId).slice(0, 6)

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
    visitors: smallest([...one.visitors, ...other.visitors], mostVisitors),
    organizations: seenTogether(one.organizations, other.organizations),
    by_operator: one.by_operator || other.by_operator,
  }
}

// A tag that gave way to eight smaller ones never comes back, so the order of events makes no difference.
function seenTogether(one: AnswerRow['organizations'], other: AnswerRow['organizations']) {
  const tags = smallest([...Object.keys(one), ...Object.keys(other)], mostOrganizations)
  const of = (tag: string, what: keyof Seen) =>
    smallest([...(one[tag]?.[what] ?? []), ...(other[tag]?.[what] ?? [])], mostOfOrganization[what])
  return Object.fromEntries(
    tags.map((tag) => [tag, { visitors: of(tag, 'visitors'), networks: of(tag, 'networks') }]),
  )
}

const smallest = (hashes: string[], count: number) => [...new Set(hashes)].sort().slice(0, count)

const isSame = (one: AnswerRow, other: AnswerRow) =>
  one.by_operator === other.by_operator &&
  one.visitors.join() === other.visitors.join() &&
  JSON.stringify(one.organizations) === JSON.stringify(other.organizations)

/** How many visitors there were, by the smallest of their hashes: exact below 32, and an estimate beyond. */
export function distinct(smallest: string[]): number {
  const largest = smallest.at(-1)
  if (smallest.length < mostVisitors || largest === undefined) return smallest.length
  return Math.round(((mostVisitors - 1) * 2 ** 48) / Number.parseInt(largest.slice(0, digestLength), 16))
}
