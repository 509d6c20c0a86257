import { createLru } from '../../../infra/lru.ts'
import type { RowOf } from '../../../infra/postgres/table.ts'
import type { sessions } from '../../../projections/sessions/tables.ts'
import type { Verdict } from '../../../schemas/events.ts'
import type { ScoringModel } from '../../scoring/model/model.ts'
import { scoreOf } from '../../scoring/model/score.ts'
import { timeText } from '../tables.ts'
import { type FieldMoves, startField } from './fields.ts'
import { type MarkReport, startMarks } from './measure.ts'
import { allOf, type Moves, movedOf, noMoves } from './moves.ts'

/** Columns that a rehearsal reads. Facts are null once the organization's decisions have expired. */
export const factFields = [
  ...(['session_id', 'organization_id', 'evaluated_at', 'verdict', 'risk_score'] as const),
  ...(['has_snapshot', 'browser', 'country', 'page_host', 'mark'] as const),
] as const

export interface FactRow extends Pick<RowOf<typeof sessions>, (typeof factFields)[number]> {
  /** The id of the one that decided. */
  model: string | null
  /** Slugs of all that fired, separated by spaces. */
  signals: string | null
}

/** A session whose score changes. */
interface ChangedSession extends Omit<FactRow, 'has_snapshot' | 'model' | 'evaluated_at'> {
  evaluated_at: string
  verdict_after: Verdict
  risk_score_after: number
}

export const fields = ['browser', 'country', 'page_host', 'signal'] as const

/** Sessions as they were decided, compared with how a model would have decided them. */
export interface Rehearsal {
  sessions: number
  moved: number
  /** Records that follow from their signals and the model that decided, if that is known. */
  check: {
    followed: number
    differed: number
    examples: string[]
    unknown_models: Record<string, number>
  }
  moves: Moves
  /** Sessions by the change of their score, lowest first. */
  score_changes: { by: number; sessions: number }[]
  by: Record<(typeof fields)[number], FieldMoves>
  marks: MarkReport
  most_changed: ChangedSession[]
  /** Left out, because the organization's decisions have ended, and with them what fired. */
  ended: number
  /** Sessions with signals that the model does not know, and how many have each. */
  unknown_signals: { sessions: number; signals: Record<string, number> }
}

export interface Models {
  tried: ScoringModel
  /** Returns the model of an id, where it is known. */
  modelOf: (id: string) => ScoringModel | undefined
}

/** Takes sessions one at a time. What it remembers grows with how they differ, and not with their number. */
export function startRehearsal({ tried, modelOf }: Models) {
  const scoreTried = scorer(tried)
  const check = startCheck(modelOf)
  const moves = noMoves()
  const changes = new Map<number, number>()
  const by = {
    browser: startField(),
    country: startField(),
    page_host: startField(),
    signal: startField(),
  }
  const marks = startMarks()
  const changed = startMostChanged()
  const unknown = { sessions: 0, signals: new Map<string, number>() }
  let ended = 0

  function add(row: FactRow): void {
    if (row.signals === null) {
      ended++
      return
    }
    const { signals, unknownSignals, ...score } = scoreTried(row.signals, row.has_snapshot === true)
    const [before, after] = [row.verdict, score.verdict]
    check.add(row, row.signals)
    moves[before][after]++
    increment(changes, score.risk - row.risk_score)
    for (const field of ['browser', 'country', 'page_host'] as const)
      by[field].add(row[field], before, after)
    for (const signal of signals) by.signal.add(signal, before, after)
    if (row.mark !== null) marks.add({ mark: row.mark, signals, before, after })
    changed.add(row, score)
    if (unknownSignals.length > 0) unknown.sessions++
    for (const signal of unknownSignals) increment(unknown.signals, signal)
  }

  const result = (): Rehearsal => ({
    sessions: allOf(moves),
    moved: movedOf(moves),
    check: check.result(),
    moves,
    score_changes: [...changes]
      .map(([by, sessions]) => ({ by, sessions }))
      .sort((a, b) => a.by - b.by),
    by: {
      browser: by.browser.result(),
      country: by.country.result(),
      page_host: by.page_host.result(),
      signal: by.signal.result(),
    },
    marks: marks.result(),
    most_changed: changed.result(),
    ended,
    unknown_signals: { sessions: unknown.sessions, signals: Object.fromEntries(unknown.signals) },
  })
  return { add, result }
}

const maxCached = 100_000

/** Returns how the model scores signals, whose slugs are separated by spaces. The same ones fire together again and again. */
function scorer(model: ScoringModel) {
  function compute(slugs: string, hasSnapshot: boolean) {
    const signals = slugs === '' ? [] : slugs.split(' ')
    const unknownSignals = signals.filter((signal) => !Object.hasOwn(model.signals, signal))
    const { risk, verdict } = scoreOf(model, { signals, hasSnapshot })
    return { signals, unknownSignals, risk, verdict }
  }
  const computed = createLru<string, ReturnType<typeof compute>>(maxCached)
  return (slugs: string, hasSnapshot: boolean) => {
    const key = `${hasSnapshot} ${slugs}`
    const score = computed.get(key) ?? compute(slugs, hasSnapshot)
    computed.set(key, score)
    return score
  }
}

const mostExamples = 5

function startCheck(modelOf: Models['modelOf']) {
  const scorers = new Map<string, ReturnType<typeof scorer> | undefined>()
  const unknown = new Map<string, number>()
  const counts = { followed: 0, differed: 0 }
  const examples: string[] = []

  function scorerOf(id: string) {
    const model = scorers.has(id) ? undefined : modelOf(id)
    if (!scorers.has(id)) scorers.set(id, model && scorer(model))
    return scorers.get(id)
  }

  function add(
    { session_id, model, has_snapshot, verdict, risk_score }: FactRow,
    slugs: string,
  ): void {
    const score = scorerOf(model ?? 'none')?.(slugs, has_snapshot === true)
    if (!score) increment(unknown, model ?? 'none')
    else if (score.risk === risk_score && score.verdict === verdict) counts.followed++
    else if (++counts.differed <= mostExamples) examples.push(session_id)
  }
  return {
    add,
    result: () => ({ ...counts, examples, unknown_models: Object.fromEntries(unknown) }),
  }
}

const mostChanged = 100

/** Finds the same sessions in whatever order they come. */
function startMostChanged() {
  let some: ChangedSession[] = []
  let least = 1

  function add(
    { has_snapshot: _, model: __, ...row }: FactRow,
    after: { risk: number; verdict: Verdict },
  ): void {
    if (Math.abs(after.risk - row.risk_score) < least) return
    const evaluated_at = timeText(row.evaluated_at)
    some.push({ ...row, evaluated_at, verdict_after: after.verdict, risk_score_after: after.risk })
    if (some.length >= 10 * mostChanged) result()
  }

  function result(): ChangedSession[] {
    some = some.sort(byChange).slice(0, mostChanged)
    const last = some.at(mostChanged - 1)
    if (last) least = changeOf(last)
    return some
  }
  return { add, result }
}

const changeOf = (session: ChangedSession) =>
  Math.abs(session.risk_score_after - session.risk_score)
const byChange = (one: ChangedSession, other: ChangedSession) =>
  changeOf(other) - changeOf(one) || (one.session_id < other.session_id ? -1 : 1)

function increment<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
