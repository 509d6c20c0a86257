import type pg from 'pg'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import type { ReadLimiter } from '../../infra/access/read-limiter.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import type { Clock, Random } from '../../infra/ids.ts'
import type { SessionScored } from '../../schemas/events.ts'
import type { Identification } from './schemas/identification.ts'
import type { ScoreExplanation } from './schemas/score.ts'

/** Effect of a signal on the score. */
type SignalRole = 'risk' | 'trust' | 'context'

export interface ReadbackOptions {
  pool: pg.Pool
  readLimiter?: ReadLimiter | undefined
  decideAs: DecideAs
  auth: Auth
  /** Explains how the session was matched to its visitor. Resolves to null if that is unknown. */
  explainMatch(sessionId: string): Promise<Identification | null>
  explainScore(decision: SessionScored): Promise<ScoreExplanation>
  /** Returns the documents of the session, oldest first. Only sessions of the last day have some. */
  findDocuments(sessionId: string): Promise<{ opened_at: number; url: string }[]>
  /** Returns undefined for signals that the standard model lacks. */
  roleOf(signal: string): SignalRole | undefined
  keyring: Keyring
  clock: Clock
  random: Random
}

/** Returns the query parameter for optional response members. The description must list their names. */
export const includeParameter = (description: string) =>
  z
    .union([z.string(), z.array(z.string())])
    .optional()
    .describe(`${description} Unknown values are ignored.`)

export const isIncluded = (include: string | string[] | undefined, name: string): boolean =>
  [include].flat().includes(name)
