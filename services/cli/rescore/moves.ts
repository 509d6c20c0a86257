import type { Verdict } from '../../../schemas/events.ts'

export const verdicts = ['human', 'inconclusive', 'bot'] as const satisfies Verdict[]

/** Number of sessions by verdict before and after the change of the model: `moves[before][after]`. */
export type Moves = Record<Verdict, Record<Verdict, number>>

export function emptyMoves(): Moves {
  const zeros = () => ({ human: 0, inconclusive: 0, bot: 0 })
  return { human: zeros(), inconclusive: zeros(), bot: zeros() }
}

export const verdictPairs = verdicts.flatMap((before) =>
  verdicts.map((after) => ({ before, after })),
)

export function addMoves(to: Moves, from: Moves): void {
  for (const { before, after } of verdictPairs) to[before][after] += from[before][after]
}

const count = (moves: Moves, isCounted: (before: Verdict, after: Verdict) => boolean): number =>
  verdictPairs.reduce(
    (sum, { before, after }) => sum + (isCounted(before, after) ? moves[before][after] : 0),
    0,
  )

export const countAll = (moves: Moves): number => count(moves, () => true)
export const countMoved = (moves: Moves): number =>
  count(moves, (before, after) => before !== after)
export const totalBefore = (moves: Moves, verdict: Verdict) =>
  count(moves, (before) => before === verdict)
export const totalAfter = (moves: Moves, verdict: Verdict) =>
  count(moves, (_, after) => after === verdict)
