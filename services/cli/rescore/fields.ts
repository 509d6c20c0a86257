import type { Verdict } from '../../../schemas/events.ts'
import { addMoves, allOf, type Moves, movedOf, noMoves } from './moves.ts'

export interface ValueMoves {
  sessions: number
  moved: number
  moves: Moves
}

export interface FieldMoves {
  /** Those of which most sessions move; null is what is not known of a session. */
  top: (ValueMoves & { value: string | null })[]
  /** All others. A session is in it once for each of its signals. */
  rest: ValueMoves
}

const topValues = 20
// Pages may have hosts without end; those beyond count as the rest.
const mostValues = 10_000

/** Counts moves by the values of a field. */
export function startField() {
  const values = new Map<string | null, Moves>()
  const beyond = noMoves()

  function movesOf(value: string | null): Moves {
    const known = values.get(value)
    if (known || values.size >= mostValues) return known ?? beyond
    const moves = noMoves()
    values.set(value, moves)
    return moves
  }

  const add = (value: string | null, before: Verdict, after: Verdict) => {
    movesOf(value)[before][after]++
  }

  function result(): FieldMoves {
    const all = [...values].map(([value, moves]) => ({ value, ...counted(moves) })).sort(byMoved)
    const rest = noMoves()
    for (const { moves } of [...all.slice(topValues), { moves: beyond }]) addMoves(rest, moves)
    return { top: all.slice(0, topValues), rest: counted(rest) }
  }
  return { add, result }
}

const counted = (moves: Moves): ValueMoves => ({
  sessions: allOf(moves),
  moved: movedOf(moves),
  moves,
})

type Value = FieldMoves['top'][number]
const byMoved = (one: Value, other: Value) =>
  other.moved - one.moved ||
  other.sessions - one.sessions ||
  ((one.value ?? '') < (other.value ?? '') ? -1 : 1)
