import type pg from 'pg'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { deleteDataKeys } from '../../infra/event-store/data-key-table.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { Clock } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { digestKeyId, digestKeyPrefix } from '../../projections/answers/digests.ts'
import {
  createLearnedAnswers,
  type EngineProgress,
  type LearnedAnswers,
  readLearnedAnswers,
} from '../../projections/answers/learned.ts'

interface FollowOptions {
  pool: pg.Pool
  logger: Logger
  clock: Clock
  keyring: Keyring
}

// With three engines learned, a read takes a second and up to 100 MB of rows.
const intervalMs = 5 * 60_000

const nothingLearnedWarning =
  'no browser engine is learned yet: sessions without natural input are inconclusive, and forged sessions with recorded input can pass as human; run tidegate learn'

/** Keeps the learned answers in memory, and rereads them every five minutes. Before the first read there are none. */
export function followLearnedAnswers({ pool, logger, clock, keyring }: FollowOptions): {
  learned: LearnedAnswers
  overview(): EngineProgress[]
  /** Triggers a read, for use after an operator's browser has taught answers. */
  wake(): void
  stop(): Promise<void>
} {
  let hasWarned = false
  let current = createLearnedAnswers([], { now: clock(), keys: keyring.all })
  const { wake, stop } = runPeriodically({
    intervalMs,
    minIntervalMs: 1000,
    async work() {
      current = await readLearnedAnswers({ pool, now: clock(), keys: keyring.all })
      if (!hasWarned && !current.overview().some(({ isLearned }) => isLearned))
        logger.warn(nothingLearnedWarning)
      hasWarned = true
    },
    onError: (err) => logger.warn({ err }, 'failed to read learned answers; retrying'),
  })
  const learned: LearnedAnswers = {
    bankQuestions: (number) => current.bankQuestions(number),
    answersTo: (query) => current.answersTo(query),
    progress: (answerClass) => current.progress(answerClass),
  }
  return { learned, overview: () => current.overview(), wake, stop }
}

/** Deletes the keys of past months, so that nobody can test guesses against a digest. Returns the number deleted. */
export const purgeDigestKeys = (db: Db, now: number): Promise<number> =>
  deleteDataKeys(db, { from: digestKeyPrefix, before: digestKeyId(now) })
