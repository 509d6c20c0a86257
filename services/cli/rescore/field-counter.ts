import type { Verdict } from '../../../schemas/events.ts'
import { addMoves, countAll, countMoved, emptyMoves, type Moves } from './moves.ts'

/** Verdict changes of the sessions with a value. `moved` counts the sessions whose verdict changes. */
export interface ValueMoves {
  sessions: number
  moved: number
  moves: Moves
}

export interface FieldMoves {
  /** Values with the most verdict changes, in that order. `value` is null for sessions without the field. */
  top: (ValueMoves & { value: string | null })[]
  /** Sums over all other values. For signals, a session counts once per signal. */
  rest: ValueMoves
}

const topValues = 20
// Limits memory, because the number of page hosts is unlimited. Further values count as the rest.
const maxValues = 10_000

/** Creates a counter of verdict changes by the values of a field. */
export function createFieldCounter() {
  const values = new Map<string | null, Moves>()
  const overflow = emptyMoves()

  function movesOf(value: string | null): Moves {
    const existing = values.get(value)
    if (existing || values.size >= maxValues) return existing ?? overflow
    const moves = emptyMoves()
    values.set(value, moves)
    return moves
  }

  const add = (value: string | null, before: Verdict, after: Verdict) => {
    movesOf(value)[before][after]++
  }

  function result(): FieldMoves {
    const sorted = [...values]
      .map(([value, moves]) => ({ value, ...toValueMoves(moves) }))
      .sort(byMoved)
    const rest = emptyMoves()
    for (const { moves } of [...sorted.slice(topValues), { moves: overflow }]) addMoves(rest, moves)
    return { top: sorted.slice(0, topValues), rest: toValueMoves(rest) }
  }
  return { add, result }
}

const toValueMoves = (moves: Moves): ValueMoves => ({
  sessions: countAll(moves),
  moved: countMoved(moves),
  moves,
})

type Value = FieldMoves['top'][number]
const byMoved = (a: Value, b: Value) =>
  b.moved - a.moved || b.sessions - a.sessions || ((a.value ?? '') < (b.value ?? '') ? -1 : 1)
