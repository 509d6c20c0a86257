import type pg from 'pg'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import type { ReadShares } from '../../infra/access/read-shares.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import type { Clock, Random } from '../../infra/ids.ts'
import type { SessionScored } from '../../schemas/events.ts'
import type { Identification } from './schemas/identification.ts'
import type { ScoreExplanation } from './schemas/score.ts'

export interface ReadbackOptions {
  pool: pg.Pool
  shares?: ReadShares | undefined
  decideAs: DecideAs
  auth: Auth
  /** null = it is not known why the session is of its visitor. */
  identify(sessionId: string): Promise<Identification | null>
  explainScore(decision: SessionScored): Promise<ScoreExplanation>
  keyring: Keyring
  clock: Clock
  random: Random
}

/** The parameter by which members are asked for that are left out otherwise. `does` says what each name adds. */
export const includeParameter = (does: string) =>
  z
    .union([z.string(), z.array(z.string())])
    .optional()
    .describe(`${does} Anything else adds nothing.`)

export const isIncluded = (include: string | string[] | undefined, name: string): boolean =>
  [include].flat().includes(name)
