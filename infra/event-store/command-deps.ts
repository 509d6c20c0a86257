import type { Keyring } from '../crypto/keyring.ts'
import { type Clock, type Id, type Random, timeOrderedId } from '../ids.ts'
import type { Decide } from './decide.ts'

/**
 * What commands work with. Ids and secrets come from `random` and `idTime` alone: with the same, a command is repeated.
 * When it happens comes from `clock`, so that a repetition which is the first to have an effect has it then, and
 * periods that start with it are whole.
 */
export interface CommandDeps {
  decide: Decide
  keyring: Keyring
  clock: Clock
  random: Random
  /** Epoch milliseconds that ids start with; default: when the command happens. */
  idTime?: number
}

/** The id of something that a command makes at `now` (epoch milliseconds); a repetition makes the same. */
export function newId<P extends string>(
  prefix: P,
  { random, idTime, now }: Pick<CommandDeps, 'random' | 'idTime'> & { now: number },
): Id<P> {
  return timeOrderedId(prefix, idTime ?? now, random)
}
