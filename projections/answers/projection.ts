import { hash } from 'node:crypto'
import { bankNumberOf } from '../../infra/challenges/bank.ts'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { memoize } from '../../infra/lru.ts'
import type { Cte } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import {
  column,
  loadRows,
  primaryKey,
  type RowOf,
  saveRows,
  table,
  untrustedText,
} from '../../infra/postgres/table.ts'
import {
  type EngineAnswersLearned,
  type Environment,
  eventTopics,
  type GivenAnswers,
  type SessionScored,
} from '../../schemas/events.ts'
import { answerDigest, classDigest, handshakeQuestion } from './digests.ts'

/** Answers that browsers of a class gave to questions or drawings. */
export const answers = table('answers', {
  id: primaryKey(column.id(), 'answer_id'),
  environment: column.text<Environment>(),
  /** `classDigest` of an engine with its version, of machines that draw alike, or of a TLS fingerprint. */
  class: untrustedText(column.text()),
  /** Id of a question, `canvas` with the seed of a drawing, or `handshake` (see `handshakeQuestion`). */
  question: column.text(),
  /** `answerDigest` of the answer. */
  answer: untrustedText(column.text()),
  /** The 32 smallest visitor slots (see `slotOf`), each followed by the organization's tag, ascending. */
  visitors: column.json<string[]>(),
  /** Sources of the eight organizations with the smallest tags, by tag. */
  organizations: column.json<Record<string, AnswerSources>>(),
  /** Tags of organizations whose trusted browser gave the answer; `allOrganizations` for the operator's browser. */
  taught: column.json<string[]>(),
})
export type AnswerRow = RowOf<typeof answers>

/** An organization's smallest visitor slots, network digests and hours since 1970, ascending. */
export interface AnswerSources {
  visitors: string[]
  networks: string[]
  hours: number[]
}

/** Number of different hours in which visitors must give an answer before it is accepted. */
export const minHours = 6
const maxVisitors = 32
// No more are needed to accept an answer.
const maxNetworks = 10
const maxOrganizations = 8
export const allEnvironments: readonly Environment[] = ['live', 'test']

export const answersProjection: Projection = {
  name: 'answers',
  version: 3,
  topics: [eventTopics.SessionScored, eventTopics.EngineAnswersLearned],
  types: new Set(['SessionScored', 'EngineAnswersLearned']),
  tables: [answers.name],
  ddl: answers.ddl,
  indexes: 'create index on answers (question);',
  appliedIn: [],
  batchDelayMs: 2000,
  apply,
  // Sessions of all partitions read and update the same rows.
  isExclusive: () => true,
}

// Rows keep the smallest hashes, so the result depends neither on the order of events nor on duplicates.
async function apply(tx: Tx, events: RecordedEvent[]): Promise<Cte[]> {
  const merged = mergeAnswers(events.flatMap(rowsOf))
  const stored = await loadRows(tx, answers, { by: 'id', ids: [...merged.keys()] })
  const changed = [...merged.values()].flatMap((row) => {
    const current = stored.get(row.id)
    const next = current ? mergeRows(current, row) : row
    return current && isSame(current, next) ? [] : [next]
  })
  return saveRows(answers, changed)
}

function rowsOf(event: RecordedEvent): AnswerRow[] {
  if (event.type === 'SessionScored') return answerRows(event.data)
  return event.type === 'EngineAnswersLearned' ? learnedRows(event.data) : []
}

/** Tag in `taught` for answers of the operator's browser. */
export const allOrganizations = '*'

// Answers of a trusted browser apply to both environments.
function learnedRows({
  organization_id,
  engine_family,
  answers: learned,
}: EngineAnswersLearned): AnswerRow[] {
  const tag = organization_id === null ? allOrganizations : organizationTag(organization_id)
  const sources = { visitors: [], organizations: {}, taught: [tag] }
  return allEnvironments.flatMap((environment) =>
    Object.entries(learned).map(([question, answer]) => ({
      ...answerOf({ environment, class: classDigest(engine_family), question, answer }),
      ...sources,
    })),
  )
}

/** Returns the rows to merge for a decision. A visitor counts once, however many sessions it has. */
export function answerRows(data: SessionScored): AnswerRow[] {
  const given = data.given_answers
  if (!given) return []
  const { engine, engine_family, canvas_class, canvas_seed, canvas_answer } = given
  const { environment, organization_id } = data
  const tag = organizationTag(organization_id)
  const visitor = `${slotOf(data, given)}${given.visitor_digest.slice(0, slotLength)}`
  const source = {
    visitors: [visitor],
    networks: [given.network_digest.slice(0, networkDigestLength)],
    hours: [Math.floor(data.evaluated_at / hourMs)],
  }
  const sources = { visitors: [`${visitor}${tag}`], organizations: { [tag]: source }, taught: [] }
  const row = (className: string, question: string, answer: string): AnswerRow => ({
    ...answerOf({ environment, class: className, question, answer }),
    ...sources,
  })
  const { handshake } = given
  const handshakes =
    handshake && engine_family
      ? [row(handshake, handshakeQuestion, answerDigest(engine_family))]
      : []
  if (!given.is_consistent) return handshakes
  const family = engine_family && classDigest(engine_family)
  const engineAnswers = Object.entries(given.engine_answers).flatMap(([id, answer]) => {
    const className = bankNumberOf(Number(id)) === undefined ? engine : family
    return className === null ? [] : [row(className, id, answer)]
  })
  const hasDrawing = canvas_class !== null && canvas_seed !== null && canvas_answer !== null
  const drawings = hasDrawing ? [row(canvas_class, `canvas ${canvas_seed}`, canvas_answer)] : []
  return [...handshakes, ...engineAnswers, ...drawings]
}

const hourMs = 60 * 60 * 1000
const dayMs = 24 * hourMs
const networkDigestLength = 12
// Hexadecimal digits of a slot, and of the visitor digest that follows it.
const slotLength = 8

/**
 * Returns the visitor's slot. A network has two slots per day and organization, and each slot counts one visitor. This
 * limits the influence of a network.
 */
function slotOf(
  { organization_id, evaluated_at }: Pick<SessionScored, 'organization_id' | 'evaluated_at'>,
  { network_digest, visitor_digest }: Pick<GivenAnswers, 'network_digest' | 'visitor_digest'>,
): string {
  const half = Number.parseInt(visitor_digest.slice(-1), 16) % 2
  const day = Math.floor(evaluated_at / dayMs)
  return digest('slot', organization_id, network_digest, String(day), String(half)).slice(
    0,
    slotLength,
  )
}

/** Returns a short hash of the organization, which identifies it in rows. */
export const organizationTag = memoize(2000, (organizationId: string) =>
  digest('organization', organizationId).slice(0, 6),
)

const answerOf = (key: Pick<AnswerRow, 'environment' | 'class' | 'question' | 'answer'>) => ({
  id: digest(key.environment, key.class, key.question, key.answer),
  ...key,
})

function digest(...parts: string[]): string {
  return hash('sha256', parts.join('\0')).slice(0, 16)
}

/** Returns the merged rows by id. */
export function mergeAnswers(rows: AnswerRow[]): Map<string, AnswerRow> {
  const merged = new Map<string, AnswerRow>()
  for (const row of rows) {
    const current = merged.get(row.id)
    merged.set(row.id, current ? mergeRows(current, row) : row)
  }
  return merged
}

function mergeRows(a: AnswerRow, b: AnswerRow): AnswerRow {
  return {
    ...a,
    visitors: smallestSlots([...a.visitors, ...b.visitors], maxVisitors),
    organizations: mergeOrganizations(a.organizations, b.organizations),
    taught: [...new Set([...a.taught, ...b.taught])].sort(),
  }
}

// A tag displaced by eight smaller ones never returns, so the order of events does not matter.
function mergeOrganizations(a: AnswerRow['organizations'], b: AnswerRow['organizations']) {
  const tags = smallest([...Object.keys(a), ...Object.keys(b)], maxOrganizations)
  return Object.fromEntries(
    tags.map((tag) => [tag, mergeSources(a[tag] ?? noSources, b[tag] ?? noSources)]),
  )
}

const mergeSources = (a: AnswerSources, b: AnswerSources): AnswerSources => ({
  visitors: smallestSlots([...a.visitors, ...b.visitors], maxVisitors),
  networks: smallest([...a.networks, ...b.networks], maxNetworks),
  hours: [...new Set([...a.hours, ...b.hours])].sort((x, y) => x - y).slice(0, minHours),
})

const noSources: AnswerSources = { visitors: [], networks: [], hours: [] }

const smallest = (hashes: string[], count: number) => [...new Set(hashes)].sort().slice(0, count)

// Keeps the visitor with the smallest digest of each slot, so the order of events does not matter.
function smallestSlots(visitors: string[], count: number): string[] {
  const sorted = [...new Set(visitors)].sort()
  const slotAt = (i: number) => sorted[i]?.slice(0, slotLength)
  return sorted.filter((_, i) => i === 0 || slotAt(i) !== slotAt(i - 1)).slice(0, count)
}

const isSame = (a: AnswerRow, b: AnswerRow) =>
  a.taught.join() === b.taught.join() &&
  a.visitors.join() === b.visitors.join() &&
  JSON.stringify(a.organizations) === JSON.stringify(b.organizations)

/**
 * Returns the number of distinct visitors: exact below 32 slots, otherwise the k-minimum-values (KMV) estimate from the
 * largest of the 32 smallest hashes.
 */
export function estimateVisitors(slots: string[]): number {
  const visitors = new Set(slots.map((slot) => slot.slice(slotLength, 2 * slotLength))).size
  const largest = slots.at(-1)
  if (slots.length < maxVisitors || largest === undefined) return visitors
  const total =
    ((maxVisitors - 1) * 2 ** (4 * slotLength)) / Number.parseInt(largest.slice(0, slotLength), 16)
  return Math.round((total * visitors) / slots.length)
}
