import type pg from 'pg'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { deleteDataKeys } from '../../infra/event-store/data-key-table.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { Clock } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { countingKeyId, countingKeyPrefix } from '../../projections/answers/digests.ts'
import {
  type EngineLearned,
  type LearnedAnswers,
  learnFrom,
  readLearned,
} from '../../projections/answers/learned.ts'

interface LearningOptions {
  pool: pg.Pool
  logger: Logger
  clock: Clock
  keyring: Keyring
}

// With three engines learned that is some 100 MB of rows at the most, and a second.
const everyMs = 5 * 60_000

const nothingIsLearned =
  'no browser engine is learned yet: sessions without natural input are inconclusive, and a forger with recorded input passes for a person; tidegate learn ends that'

/** Reads what was learned every five minutes. Until the first time, and without the read model, nothing is known. */
export function runLearning({ pool, logger, clock, keyring }: LearningOptions): {
  learned: LearnedAnswers
  overview(): EngineLearned[]
  /** Reads soon, because an operator's browser has taught something. */
  wake(): void
  stop(): Promise<void>
} {
  let hasWarned = false
  let current = learnFrom([], { now: clock(), keys: keyring.all })
  const { wake, stop } = runPeriodically({
    intervalMs: everyMs,
    gapMs: 1000,
    async work() {
      current = await readLearned({ pool, now: clock(), keys: keyring.all })
      if (!hasWarned && !current.overview().some(({ isLearned }) => isLearned))
        logger.warn(nothingIsLearned)
      hasWarned = true
      return false
    },
    onError: (err) =>
      logger.warn({ err }, 'learned answers were not read; the next poll tries again'),
  })
  const learned: LearnedAnswers = {
    ownQuestions: (number) => current.ownQuestions(number),
    right: (of) => current.right(of),
    progress: (of) => current.progress(of),
  }
  return { learned, overview: () => current.overview(), wake, stop }
}

/** Deletes the keys of months that are over, so that nobody can find out what a digest was made of. */
export const purgeCountingKeys = (db: Db, now: number): Promise<number> =>
  deleteDataKeys(db, { from: countingKeyPrefix, before: countingKeyId(now) })
