import type { Verdict } from '../../../schemas/events.ts'
import { type Cell, textTable, timeText } from '../tables.ts'
import { type MarkReport, minMarks, type Share } from './mark-counter.ts'
import { countAll, type Moves, totalAfter, totalBefore, verdictPairs, verdicts } from './moves.ts'
import { comparedFields, type Rehearsal } from './rehearse.ts'

export interface ReportContext {
  /** Id of the candidate model. */
  candidateId: string
  since: number
  until: number
  /** Text that names the organizations and the environment. */
  scope: string
}

/** Section of the report: a table, which the HTML page may precede with a chart. */
export interface Section {
  name: 'verdicts' | 'scores' | 'marks' | (typeof comparedFields)[number] | 'sessions'
  title: string
  notes: string[]
  head: string[]
  rows: Cell[][]
}

export function rescoreText(rehearsal: Rehearsal, context: ReportContext): string {
  const parts = sectionsOf(rehearsal).map(({ title, notes, head, rows }) =>
    [`${title}.`, ...notes, ...(rows.length > 0 ? [textTable(head, rows)] : [])].join('\n'),
  )
  return [titleOf(context), summaryOf(rehearsal, context).join('\n'), ...parts].join('\n\n')
}

export const titleOf = ({ candidateId }: ReportContext) =>
  `Model ${candidateId} on recorded sessions`

export function summaryOf(rehearsal: Rehearsal, { since, until, scope }: ReportContext): string[] {
  const { sessions, moved } = rehearsal
  const note = 'Only the model differs: signals and learned visitor data are as recorded.'
  return [
    `Sessions of ${scope} with their newest decision from ${timeText(since)} to ${timeText(until)}.`,
    `${numberText(moved)} of ${numberText(sessions)} sessions (${percentText(moved / sessions)}) would change verdict. ${note}`,
    ...checkLines(rehearsal),
    ...exclusionLines(rehearsal),
  ]
}

function checkLines({ check }: Rehearsal): string[] {
  const unknown = Object.entries(check.unknown_models).map(
    ([id, count]) => `${id} (${numberText(count)})`,
  )
  return [
    `${numberText(check.followed)} recorded scores can be reproduced from their signals and model; ${numberText(check.differed)} cannot.`,
    ...(check.differed > 0 ? [`Examples that cannot: ${check.examples.join(', ')}`] : []),
    ...(unknown.length > 0
      ? [`Not checked, because the model is not stored here: ${unknown.join(', ')}`]
      : []),
  ]
}

function exclusionLines({ ended, unknown_signals: unknown }: Rehearsal): string[] {
  return [
    ...(ended > 0
      ? [`Left out, because their decisions have been deleted: ${numberText(ended)}`]
      : []),
    ...(unknown.sessions > 0
      ? [
          `${numberText(unknown.sessions)} sessions have signals that are not in the model and count as 0: ${Object.keys(unknown.signals).join(', ')}`,
        ]
      : []),
  ]
}

export function sectionsOf(rehearsal: Rehearsal): Section[] {
  const byField = comparedFields.map((field) => fieldSection(rehearsal, field))
  return [
    verdictSection(rehearsal.moves),
    scoreSection(rehearsal),
    markSection(rehearsal.marks),
    ...byField.filter(({ rows }) => rows.length > 0),
    sessionSection(rehearsal),
  ]
}

function verdictSection(moves: Moves): Section {
  const rows = verdicts.map((before) => [
    before,
    ...verdicts.map((after) => numberText(moves[before][after])),
    numberText(totalBefore(moves, before)),
  ])
  const totals = verdicts.map((after) => numberText(totalAfter(moves, after)))
  return {
    name: 'verdicts',
    title: 'Verdicts',
    notes: [],
    head: ['before → after', ...verdicts, 'all'],
    rows: [...rows, ['all', ...totals, numberText(countAll(moves))]],
  }
}

const step = 10

/** Returns the number of sessions by score change, in steps of ten, without unchanged sessions. */
export function scoreSteps({
  score_changes,
}: Pick<Rehearsal, 'score_changes'>): [string, number][] {
  const steps = new Map<number, number>()
  for (const { by, sessions } of score_changes) {
    const index = Math.sign(by) * Math.ceil(Math.abs(by) / step)
    steps.set(index, (steps.get(index) ?? 0) + sessions)
  }
  const [first = 0, last = 0] = [Math.min(...steps.keys()), Math.max(...steps.keys())]
  const indexes = Array.from({ length: last - first + 1 }, (_, i) => first + i)
  return indexes.filter((i) => i !== 0).map((i) => [stepText(i), steps.get(i) ?? 0])
}

function stepText(index: number): string {
  const [near, far] = [(Math.abs(index) - 1) * step + 1, Math.abs(index) * step]
  return index < 0 ? `-${far} to -${near}` : `+${near} to +${far}`
}

function scoreSection(rehearsal: Rehearsal): Section {
  const unchanged = rehearsal.score_changes.find(({ by }) => by === 0)?.sessions ?? 0
  return {
    name: 'scores',
    title: 'Score changes',
    notes: [`Unchanged: ${numberText(unchanged)}.`],
    head: ['change', 'sessions'],
    rows: scoreSteps(rehearsal).map(([text, sessions]) => [text, numberText(sessions)]),
  }
}

function markSection({
  positives,
  negatives,
  declared_bots,
  before,
  after,
  fraud,
}: MarkReport): Section {
  const labelCounts = `Labeled as bots: ${numberText(positives)}. Labeled as human or legitimate: ${numberText(negatives)}, not counting ${numberText(declared_bots)} declared bots.`
  const tooFew = `Too few labels for precision and recall: each kind needs at least ${minMarks}.`
  const frauds = countAll(fraud)
  const ofFrauds = (bots: number) => `${numberText(bots)} of ${numberText(frauds)}`
  return {
    name: 'marks',
    title: 'Labeled sessions',
    notes: [labelCounts, ...(before && after ? [] : [tooFew])],
    head: ['bot', 'before', 'after'],
    rows: [
      ...(before && after
        ? [
            ['precision', shareText(before.precision), shareText(after.precision)],
            ['recall', shareText(before.recall), shareText(after.recall)],
          ]
        : []),
      ...(frauds > 0
        ? [
            [
              'labeled as fraud',
              ofFrauds(totalBefore(fraud, 'bot')),
              ofFrauds(totalAfter(fraud, 'bot')),
            ],
          ]
        : []),
    ],
  }
}

const shareText = (share: Share | null) =>
  share && `${percentText(share.value)} (${percentText(share.low)} to ${percentText(share.high)})`

const movesNote = 'Sessions that would change verdict.'

function fieldSection({ by, moves }: Rehearsal, field: (typeof comparedFields)[number]): Section {
  const changes = verdictPairs.filter(
    ({ before, after }) => before !== after && moves[before][after] > 0,
  )
  const { top, rest } = by[field]
  const values = [
    ...top.map((entry) => ({ ...entry, value: entry.value ?? 'unknown' })),
    { ...rest, value: 'all others' },
  ]
  return {
    name: field,
    title: `Verdict changes by ${field.replace('_', ' ')}`,
    notes: [movesNote, ...(field === 'signal' ? ['A session counts once per signal.'] : [])],
    head: [field.replace('_', ' '), 'sessions', 'changed', ...changes.map(changeText)],
    rows: values
      .filter(({ moved }) => moved > 0)
      .map(({ value, sessions, moved, moves }) => [
        value,
        numberText(sessions),
        numberText(moved),
        ...changes.map(({ before, after }) => numberText(moves[before][after])),
      ]),
  }
}

const changeText = ({ before, after }: { before: Verdict; after: Verdict }) =>
  `${before} → ${after}`

function sessionSection({ most_changed }: Rehearsal): Section {
  return {
    name: 'sessions',
    title: 'Largest score changes',
    notes: [],
    head: ['before', 'after', 'session', 'decided', 'label', 'page host', 'country', 'browser'],
    rows: most_changed.map((session) => [
      `${session.risk_score} ${session.verdict}`,
      `${session.risk_score_after} ${session.verdict_after}`,
      session.session_id,
      session.evaluated_at,
      session.mark,
      session.page_host,
      session.country,
      session.browser,
    ]),
  }
}

const numberFormat = new Intl.NumberFormat('en')
export const numberText = (count: number): string => numberFormat.format(count)
const percentText = (share: number) => `${(100 * (share || 0)).toFixed(1)} %`
