import type { Verdict } from '../../../schemas/events.ts'
import { type Cell, textTable, timeText } from '../tables.ts'
import { fewestMarks, type MarkReport, type Share } from './measure.ts'
import { allOf, type Moves, pairs, totalAfter, totalBefore, verdicts } from './moves.ts'
import { fields, type Rehearsal } from './rehearse.ts'

export interface About {
  /** Id of the model. */
  tried: string
  since: number
  until: number
  /** Whose sessions they are, as it was named. */
  scope: string
}

/** A part of the report, as a table; the page has a plot of most. */
export interface Section {
  name: 'verdicts' | 'scores' | 'marks' | (typeof fields)[number] | 'sessions'
  title: string
  notes: string[]
  head: string[]
  rows: Cell[][]
}

export function rescoreText(rehearsal: Rehearsal, about: About): string {
  const parts = sectionsOf(rehearsal).map(({ title, notes, head, rows }) =>
    [`${title}.`, ...notes, ...(rows.length > 0 ? [textTable(head, rows)] : [])].join('\n'),
  )
  return [titleOf(about), summaryOf(rehearsal, about).join('\n'), ...parts].join('\n\n')
}

export const titleOf = ({ tried }: About) => `Model ${tried}, tried on recorded sessions`

export function summaryOf(rehearsal: Rehearsal, { since, until, scope }: About): string[] {
  const { sessions, moved } = rehearsal
  const stayed =
    'Which signals fired and what was learned from visitors stay as they were: only the model differs.'
  return [
    `Sessions of ${scope}, whose newest decision is from ${timeText(since)} to ${timeText(until)}.`,
    `${numberText(moved)} of ${numberText(sessions)} sessions (${percentText(moved / sessions)}) get another verdict. ${stayed}`,
    ...checkOf(rehearsal),
    ...leftOutOf(rehearsal),
  ]
}

function checkOf({ check }: Rehearsal): string[] {
  const unknown = Object.entries(check.unknown_models).map(
    ([id, some]) => `${id} (${numberText(some)})`,
  )
  return [
    `${numberText(check.followed)} recorded scores follow from their signals and the model that decided; ${numberText(check.differed)} do not.`,
    ...(check.differed > 0 ? [`Some that do not: ${check.examples.join(', ')}`] : []),
    ...(unknown.length > 0
      ? [`Not checked, because their model is not known here: ${unknown.join(', ')}`]
      : []),
  ]
}

function leftOutOf({ ended, unknown_signals: unknown }: Rehearsal): string[] {
  return [
    ...(ended > 0 ? [`Left out, because their decisions have ended: ${numberText(ended)}`] : []),
    ...(unknown.sessions > 0
      ? [
          `${numberText(unknown.sessions)} sessions have signals that the model does not know, which count nothing: ${Object.keys(unknown.signals).join(', ')}`,
        ]
      : []),
  ]
}

export function sectionsOf(rehearsal: Rehearsal): Section[] {
  const byField = fields.map((field) => fieldSection(rehearsal, field))
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
    rows: [...rows, ['all', ...totals, numberText(allOf(moves))]],
  }
}

const step = 10

/** How many scores change by so much, in steps of ten; those that stay are left out. */
export function scoreSteps({
  score_changes,
}: Pick<Rehearsal, 'score_changes'>): [string, number][] {
  const steps = new Map<number, number>()
  for (const { by, sessions } of score_changes) {
    const at = Math.sign(by) * Math.ceil(Math.abs(by) / step)
    steps.set(at, (steps.get(at) ?? 0) + sessions)
  }
  const [first = 0, last = 0] = [Math.min(...steps.keys()), Math.max(...steps.keys())]
  const all = Array.from({ length: last - first + 1 }, (_, i) => first + i).filter((at) => at !== 0)
  return all.map((at) => [stepText(at), steps.get(at) ?? 0])
}

function stepText(at: number): string {
  const [near, far] = [(Math.abs(at) - 1) * step + 1, Math.abs(at) * step]
  return at < 0 ? `-${far} to -${near}` : `+${near} to +${far}`
}

function scoreSection(rehearsal: Rehearsal): Section {
  const same = rehearsal.score_changes.find(({ by }) => by === 0)?.sessions ?? 0
  return {
    name: 'scores',
    title: 'Change of scores',
    notes: [`${numberText(same)} sessions keep their score.`],
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
  const counted = `Marked as bots: ${numberText(positives)}; as human or legitimate: ${numberText(negatives)}, and ${numberText(declared_bots)} more that declare themselves bots and count as neither.`
  const few = `Too few marks for precision and recall, which take ${fewestMarks} of each.`
  const frauds = allOf(fraud)
  const ofFrauds = (bots: number) => `${numberText(bots)} of ${numberText(frauds)}`
  return {
    name: 'marks',
    title: 'Marked sessions',
    notes: [counted, ...(before && after ? [] : [few])],
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
              'of those marked fraud',
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

const movesNote = 'Sessions that get another verdict, by the one they get.'

function fieldSection({ by, moves }: Rehearsal, field: (typeof fields)[number]): Section {
  const changes = pairs.filter(({ before, after }) => before !== after && moves[before][after] > 0)
  const { top, rest } = by[field]
  const all = [
    ...top.map((one) => ({ ...one, value: one.value ?? 'unknown' })),
    { ...rest, value: 'all others' },
  ]
  return {
    name: field,
    title: `Moves by ${field.replace('_', ' ')}`,
    notes: [
      movesNote,
      ...(field === 'signal' ? ['A session counts once for each of its signals.'] : []),
    ],
    head: [field.replace('_', ' '), 'sessions', 'move', ...changes.map(changeText)],
    rows: all
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
    title: 'Sessions whose score changes most',
    notes: [],
    head: ['before', 'after', 'session', 'decided', 'mark', 'page host', 'country', 'browser'],
    rows: most_changed.map((one) => [
      `${one.risk_score} ${one.verdict}`,
      `${one.risk_score_after} ${one.verdict_after}`,
      one.session_id,
      one.evaluated_at,
      one.mark,
      one.page_host,
      one.country,
      one.browser,
    ]),
  }
}

const grouped = new Intl.NumberFormat('en')
export const numberText = (count: number): string => grouped.format(count)
const percentText = (share: number) => `${(100 * (share || 0)).toFixed(1)} %`
