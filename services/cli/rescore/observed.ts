import type { ScoringModel } from '../../scoring/model/model.ts'
import { scoreOf } from '../../scoring/model/score.ts'
import { signalCatalogue } from '../../scoring/signals/catalogue.ts'
import type { Unrecorded } from '../../scoring/signals/signal.ts'
import {
  type ComparedDecisions,
  cached,
  type Evidence,
  type FindModel,
  increment,
  slugsIn,
  startComparison,
} from './compare.ts'
import type { Judged, NotJudged, RecordedDecision } from './judge.ts'

interface AsFired {
  /** Whose verdict would be another if one of the signals fired otherwise: a changed rule leaves them unjudged. */
  sessions: number
  signals: { signal: string; fired: number; sessions: number }[]
}

/** What a rehearsal of observations says beside the comparison. */
export interface ObservationReport {
  not_judged: Record<NotJudged, number>
  /** Signals that would fire otherwise, and in how many sessions. */
  fires: { signal: string; newly: number; no_longer: number }[]
  /** Signals that fire as they did, by what they look at. */
  as_fired: Record<Unrecorded, AsFired>
}

const unrecorded = signalCatalogue.flatMap(({ slug, unrecorded: kind }) => (kind ? [{ slug, kind }] : []))

/** What this release would have decided of the same observations. */
export function startObserved(modelOf: FindModel) {
  const comparison = startComparison(modelOf)
  const counts = { erased: 0, expired: 0, incomplete: 0 }
  const changed = { newly: new Map<string, number>(), noLonger: new Map<string, number>() }
  const hanging = startHanging()

  function add({ row }: RecordedDecision, { model, ...after }: Judged): void {
    comparison.add(row, after)
    const before = slugsIn(row.signals)
    for (const signal of without(after.signals, before)) increment(changed.newly, signal)
    for (const signal of without(before, after.signals)) increment(changed.noLonger, signal)
    hanging.add(model, { signals: after.signals, hasSnapshot: row.has_snapshot === true })
  }

  function firesOtherwise(): ObservationReport['fires'] {
    const all = [...new Set([...changed.newly.keys(), ...changed.noLonger.keys()])]
    const of = all.map((signal) => ({
      ...{ signal, newly: changed.newly.get(signal) ?? 0, no_longer: changed.noLonger.get(signal) ?? 0 },
    }))
    return of.sort((one, other) => other.newly + other.no_longer - one.newly - one.no_longer)
  }

  const result = (): ComparedDecisions & { observations: ObservationReport } => ({
    ...comparison.result(),
    observations: { not_judged: counts, fires: firesOtherwise(), as_fired: hanging.result() },
  })
  return { add, leaveOut: (reason: NotJudged) => void counts[reason]++, result }
}

const without = (some: string[], others: string[]) => some.filter((one) => !others.includes(one))

/** Counts whose verdicts hang on signals that fire as they did. */
function startHanging() {
  const finders = new Map<ScoringModel, ReturnType<typeof hangingBy>>()
  const fired = new Map<string, number>()
  const bySignal = new Map<string, number>()
  const sessions = { learned_answers: 0, other_sessions: 0 }

  function add(model: ScoringModel, evidence: Evidence): void {
    const find = finders.get(model) ?? hangingBy(model)
    finders.set(model, find)
    const hangsOn = find(evidence)
    for (const { slug } of unrecorded) if (evidence.signals.includes(slug)) increment(fired, slug)
    for (const { slug } of hangsOn) increment(bySignal, slug)
    for (const kind of new Set(hangsOn.map((one) => one.kind))) sessions[kind]++
  }

  const of = (kind: Unrecorded): AsFired => ({
    sessions: sessions[kind],
    signals: unrecorded
      .filter((one) => one.kind === kind)
      .map(({ slug }) => ({ signal: slug, fired: fired.get(slug) ?? 0, sessions: bySignal.get(slug) ?? 0 })),
  })
  return {
    add,
    result: () => ({ learned_answers: of('learned_answers'), other_sessions: of('other_sessions') }),
  }
}

const toggled = (signals: string[], slug: string) =>
  signals.includes(slug) ? signals.filter((one) => one !== slug) : [...signals, slug]

function hangingBy(model: ScoringModel): (evidence: Evidence) => typeof unrecorded {
  return cached(({ signals, hasSnapshot }) => {
    const verdictOf = (slugs: string[]) => scoreOf(model, { signals: slugs, hasSnapshot }).verdict
    const verdict = verdictOf(signals)
    // Answers are part of a snapshot.
    const possible = unrecorded.filter(({ kind }) => hasSnapshot || kind === 'other_sessions')
    return possible.filter(({ slug }) => verdictOf(toggled(signals, slug)) !== verdict)
  })
}
