import type { Kind } from './cases.ts'
import type { Row } from './results.ts'
import type { Verdict } from './tidegate.ts'

/** Row with a verdict. Failed rows are only listed. */
export type JudgedRow = Row & { verdict: Verdict; score: number }

export const isJudged = (row: Row): row is JudgedRow => row.verdict !== null && row.score !== null

export interface Counts {
  name: string
  rows: number
  bot: number
  inconclusive: number
  human: number
}

/** Counts verdicts by the result of `by`, in order of first appearance. */
export function countVerdicts(rows: JudgedRow[], by: (row: JudgedRow) => string): Counts[] {
  return [...Map.groupBy(rows, by)].map(([name, group]) => {
    const count = (verdict: Verdict) => group.filter((row) => row.verdict === verdict).length
    return {
      name,
      rows: group.length,
      bot: count('bot'),
      inconclusive: count('inconclusive'),
      human: count('human'),
    }
  })
}

export interface RocPoint {
  threshold: number
  /** Shares of bots (`truePositives`) and of people (`falsePositives`) with at least this score. */
  truePositives: number
  falsePositives: number
}

const thresholds = [1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]

export function rocOf(rows: JudgedRow[]): RocPoint[] {
  const [bots, people] = scores(rows)
  const share = (group: number[], threshold: number) =>
    group.length === 0 ? 0 : group.filter((score) => score >= threshold).length / group.length
  return thresholds.map((threshold) => {
    return {
      threshold,
      truePositives: share(bots, threshold),
      falsePositives: share(people, threshold),
    }
  })
}

/**
 * The chance that a bot has a higher score than a person, a tie being half of one; NaN where there is none of either.
 */
export function areaUnderCurve(rows: JudgedRow[]): number {
  const [bots, people] = scores(rows)
  const won = bots.flatMap((bot) =>
    people.map((person) => (bot > person ? 1 : bot === person ? 0.5 : 0)),
  )
  return won.reduce((sum: number, each) => sum + each, 0) / won.length
}

function scores(rows: JudgedRow[]): [number[], number[]] {
  const of = (isPerson: boolean) =>
    rows.filter(({ kind }) => (kind === 'person') === isPerson).map(({ score }) => score)
  return [of(false), of(true)]
}

export interface Change {
  name: string
  before: string
  after: string
}

/** Returns the differences from the previous run, including added and removed cases. */
export function changesSince(before: Row[], after: Row[]): Change[] {
  const told = ({ verdict, score }: Row) => (verdict === null ? 'failed' : `${verdict} ${score}`)
  const earlier = new Map(before.map((row) => [row.name, told(row)]))
  const later = new Map(after.map((row) => [row.name, told(row)]))
  const names = [...new Set([...later.keys(), ...earlier.keys()])]
  const changes = names.map((name) => {
    return { name, before: earlier.get(name) ?? 'absent', after: later.get(name) ?? 'absent' }
  })
  return changes.filter((change) => change.before !== change.after)
}

export interface PeerCatch {
  name: string
  verdict: Verdict
  score: number
  /** Findings of a peer that it has on no person. */
  found: string[]
}

/** Returns automation that we missed and a peer found, by something that it finds on no person. */
export function caughtByPeersOnly(rows: JudgedRow[]): PeerCatch[] {
  const hurts = new Set(rows.filter(({ kind }) => kind === 'person').flatMap(findings))
  const missed = rows.filter(({ kind, verdict }) => kind !== 'person' && verdict !== 'bot')
  return missed.flatMap(({ name, verdict, score, ...row }) => {
    const found = findings(row).filter((each) => !hurts.has(each))
    return found.length === 0 ? [] : [{ name, verdict, score, found }]
  })
}

function findings({ botd, fpscanner }: Pick<Row, 'botd' | 'fpscanner'>): string[] {
  const of = (name: string, peer: Row['botd']) =>
    peer?.bot ? peer.why.map((why) => `${name} ${why}`) : []
  return [...of('BotD', botd), ...of('fpscanner', fpscanner)]
}

export function risks({ signals_fired: signals }: Row): string[] {
  return signals.filter(({ role }) => role === 'risk').map(({ signal }) => signal)
}

export const kinds: Record<Kind, string> = {
  loading: 'automation that only loads the page',
  acting: 'automation that clicks or types',
  evasion: 'automation with an evasion script',
  forgery: 'HTTP scripts',
  informed: 'HTTP scripts with answers from this repository',
  'informed-fresh': 'the same, nothing learned',
  forger: 'forgers by class',
  person: 'people',
}
