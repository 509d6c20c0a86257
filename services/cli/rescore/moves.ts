import type { Verdict } from '../../../schemas/events.ts'

export const verdicts = ['human', 'inconclusive', 'bot'] as const satisfies Verdict[]

/** Sessions by their verdict before, and in it by the one after. */
export type Moves = Record<Verdict, Record<Verdict, number>>

export function noMoves(): Moves {
  const none = () => ({ human: 0, inconclusive: 0, bot: 0 })
  return { human: none(), inconclusive: none(), bot: none() }
}

export const pairs = verdicts.flatMap((before) => verdicts.map((after) => ({ before, after })))

export function addMoves(to: Moves, from: Moves): void {
  for (const { before, after } of pairs) to[before][after] += from[before][after]
}

const count = (moves: Moves, isCounted: (before: Verdict, after: Verdict) => boolean): number =>
  pairs.reduce(
    (sum, { before, after }) => sum + (isCounted(before, after) ? moves[before][after] : 0),
    0,
  )

export const allOf = (moves: Moves): number => count(moves, () => true)
export const movedOf = (moves: Moves): number => count(moves, (before, after) => before !== after)
export const totalBefore = (moves: Moves, verdict: Verdict) =>
  count(moves, (before) => before === verdict)
export const totalAfter = (moves: Moves, verdict: Verdict) =>
  count(moves, (_, after) => after === verdict)
