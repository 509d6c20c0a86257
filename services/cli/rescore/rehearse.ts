import { createLru } from '../../../infra/lru.ts'
import type { RowOf } from '../../../infra/postgres/table.ts'
import type { sessions } from '../../../projections/sessions/tables.ts'
import type { Verdict } from '../../../schemas/events.ts'
import type { ScoringModel } from '../../scoring/model/model.ts'
import { scoreOf } from '../../scoring/model/score.ts'
import { timeText } from '../tables.ts'
import { createFieldCounter, type FieldMoves } from './field-counter.ts'
import { createMarkCounter, type MarkReport } from './mark-counter.ts'
import { countAll, countMoved, emptyMoves, type Moves } from './moves.ts'

// A rehearsal is a dry run of a candidate model: it scores the recorded signals of past sessions with the candidate, and
// compares the results with the recorded decisions. Nothing is written.

/** Columns that a rehearsal reads. Many are null once the decision has expired. */
export const rehearsalColumns = [
  ...(['session_id', 'organization_id', 'evaluated_at', 'verdict', 'risk_score'] as const),
  ...(['has_snapshot', 'browser', 'country', 'page_host', 'mark'] as const),
] as const

export interface FactRow extends Pick<RowOf<typeof sessions>, (typeof rehearsalColumns)[number]> {
  /** Id of the model that made the decision. */
  model: string | null
  /** Slugs of all signals that fired, separated by spaces; null once the decision has expired. */
  signals: string | null
}

interface ChangedSession extends Omit<FactRow, 'has_snapshot' | 'model' | 'evaluated_at'> {
  evaluated_at: string
  verdict_after: Verdict
  risk_score_after: number
}

export const comparedFields = ['browser', 'country', 'page_host', 'signal'] as const

/** Comparison of the recorded decisions with those of the candidate model. */
export interface Rehearsal {
  sessions: number
  /** Number of sessions whose verdict changes. */
  moved: number
  /** Check that the recorded scores follow from their signals and model, if the model is stored here. */
  check: {
    followed: number
    differed: number
    examples: string[]
    unknown_models: Record<string, number>
  }
  moves: Moves
  /** Number of sessions by score change, lowest change first. */
  score_changes: { by: number; sessions: number }[]
  by: Record<(typeof comparedFields)[number], FieldMoves>
  marks: MarkReport
  most_changed: ChangedSession[]
  /** Number of sessions left out, because their decisions and signals have expired. */
  ended: number
  /** Sessions with signals that the candidate model lacks, in total and by signal. */
  unknown_signals: { sessions: number; signals: Record<string, number> }
}

export interface Models {
  candidate: ScoringModel
  /** Returns the model with the id; undefined if it is not stored here. */
  modelOf: (id: string) => ScoringModel | undefined
}

/** Creates a rehearsal. Add sessions one at a time: its memory grows with distinct values, not with sessions. */
export function createRehearsal({ candidate, modelOf }: Models) {
  const rescore = createScorer(candidate)
  const check = createReproductionCheck(modelOf)
  const moves = emptyMoves()
  const changes = new Map<number, number>()
  const by = {
    browser: createFieldCounter(),
    country: createFieldCounter(),
    page_host: createFieldCounter(),
    signal: createFieldCounter(),
  }
  const marks = createMarkCounter()
  const largestChanges = createLargestChanges()
  const unknown = { sessions: 0, signals: new Map<string, number>() }
  let ended = 0

  function add(row: FactRow): void {
    if (row.signals === null) {
      ended++
      return
    }
    const { signals, unknownSignals, ...score } = rescore(row.signals, row.has_snapshot === true)
    const [before, after] = [row.verdict, score.verdict]
    check.add(row, row.signals)
    moves[before][after]++
    increment(changes, score.risk - row.risk_score)
    for (const field of ['browser', 'country', 'page_host'] as const)
      by[field].add(row[field], before, after)
    for (const signal of signals) by.signal.add(signal, before, after)
    if (row.mark !== null) marks.add({ mark: row.mark, signals, before, after })
    largestChanges.add(row, score)
    if (unknownSignals.length > 0) unknown.sessions++
    for (const signal of unknownSignals) increment(unknown.signals, signal)
  }

  const result = (): Rehearsal => ({
    sessions: countAll(moves),
    moved: countMoved(moves),
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
    most_changed: largestChanges.result(),
    ended,
    unknown_signals: { sessions: unknown.sessions, signals: Object.fromEntries(unknown.signals) },
  })
  return { add, result }
}

const maxCachedScores = 100_000

/** Returns a function that scores a space-separated list of signals. Cached, because the same combinations recur. */
function createScorer(model: ScoringModel) {
  function compute(slugs: string, hasSnapshot: boolean) {
    const signals = slugs === '' ? [] : slugs.split(' ')
    const unknownSignals = signals.filter((signal) => !Object.hasOwn(model.signals, signal))
    const { risk, verdict } = scoreOf(model, { signals, hasSnapshot })
    return { signals, unknownSignals, risk, verdict }
  }
  const cache = createLru<string, ReturnType<typeof compute>>(maxCachedScores)
  return (slugs: string, hasSnapshot: boolean) => {
    const key = `${hasSnapshot} ${slugs}`
    const score = cache.get(key) ?? compute(slugs, hasSnapshot)
    cache.set(key, score)
    return score
  }
}

const maxExamples = 5

function createReproductionCheck(modelOf: Models['modelOf']) {
  const scorers = new Map<string, ReturnType<typeof createScorer> | undefined>()
  const unknown = new Map<string, number>()
  const counts = { followed: 0, differed: 0 }
  const examples: string[] = []

  function scorerOf(id: string) {
    const model = scorers.has(id) ? undefined : modelOf(id)
    if (!scorers.has(id)) scorers.set(id, model && createScorer(model))
    return scorers.get(id)
  }

  function add(
    { session_id, model, has_snapshot, verdict, risk_score }: FactRow,
    slugs: string,
  ): void {
    const score = scorerOf(model ?? 'none')?.(slugs, has_snapshot === true)
    if (!score) increment(unknown, model ?? 'none')
    else if (score.risk === risk_score && score.verdict === verdict) counts.followed++
    else if (++counts.differed <= maxExamples) examples.push(session_id)
  }
  return {
    add,
    result: () => ({ ...counts, examples, unknown_models: Object.fromEntries(unknown) }),
  }
}

const maxChanged = 100

/** Collects the sessions with the largest score changes. The result doesn't depend on the order of sessions. */
function createLargestChanges() {
  let candidates: ChangedSession[] = []
  let minChange = 1

  function add(
    { has_snapshot: _, model: __, ...row }: FactRow,
    after: { risk: number; verdict: Verdict },
  ): void {
    if (Math.abs(after.risk - row.risk_score) < minChange) return
    const evaluated_at = timeText(row.evaluated_at)
    candidates.push({
      ...row,
      evaluated_at,
      verdict_after: after.verdict,
      risk_score_after: after.risk,
    })
    if (candidates.length >= 10 * maxChanged) result()
  }

  function result(): ChangedSession[] {
    candidates = candidates.sort(byChange).slice(0, maxChanged)
    const last = candidates.at(maxChanged - 1)
    if (last) minChange = changeOf(last)
    return candidates
  }
  return { add, result }
}

const changeOf = (session: ChangedSession) =>
  Math.abs(session.risk_score_after - session.risk_score)
const byChange = (a: ChangedSession, b: ChangedSession) =>
  changeOf(b) - changeOf(a) || (a.session_id < b.session_id ? -1 : 1)

function increment<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
