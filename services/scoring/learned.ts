import type pg from 'pg'
import { deleteDataKeys } from '../../infra/event-store/data-key-table.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { runPeriodically } from '../../infra/timing.ts'
import {
  answerDigest,
  classDigest,
  countingKeyId,
  countingKeyPrefix,
} from '../../projections/answers/digests.ts'
import { distinct } from '../../projections/answers/projection.ts'
import { type GivenAnswer, readAnswers } from '../../projections/answers/queries.ts'
import { type LearnedAnswers, nothingLearned } from './answers.ts'

// An answer counts once this many visitors from this many networks gave it.
const least = { visitors: 20, networks: 10 }
// The share of a class that may answer otherwise before nothing is known of it: so many honest ones may be wronged.
const mayDiffer = 0.02

/**
 * What counts as an answer of a class: many of it gave it, from many networks. Where such answers are not those of
 * nearly all, nothing is known of the class.
 */
export function learnFrom(given: readonly GivenAnswer[]): LearnedAnswers {
  const learned = new Map<string, ReadonlySet<string>>()
  for (const [key, answers] of Map.groupBy(given, keyOf)) {
    const counted = answers.map((one) => ({ ...one, by: distinct(one.visitors) }))
    const all = sum(counted)
    const common = counted.filter((one) => {
      const isSeen = one.by >= least.visitors && one.networks.length >= least.networks
      return isSeen && one.by >= all * mayDiffer
    })
    if (common.length > 0 && sum(common) >= all * (1 - mayDiffer))
      learned.set(key, new Set(common.map(({ answer }) => answer)))
  }
  return (of) => {
    const digests = learned.get(keyOf({ ...of, class: classDigest(of.class) }))
    return digests && { has: (answer) => digests.has(answerDigest(answer)) }
  }
}

const sum = (answers: { by: number }[]) => answers.reduce((total, { by }) => total + by, 0)

const keyOf = ({ environment, class: of, asked }: Parameters<LearnedAnswers>[0]) =>
  `${environment}\n${of}\n${asked}`

interface LearningOptions {
  pool: pg.Pool
  logger: Logger
}

export interface Learning {
  learned: LearnedAnswers
  stop(): Promise<void>
}

const everyMs = 60_000

/** Reads what was learned once a minute. Until the first time, and without the read model, nothing is known. */
export function runLearning({ pool, logger }: LearningOptions): Learning {
  let current = nothingLearned
  const { stop } = runPeriodically({
    intervalMs: everyMs,
    async look() {
      current = learnFrom(await readAnswers(pool, least.visitors))
      return false
    },
    onError: (err) =>
      logger.warn({ err }, 'what was learned of answers was not read; the next look tries again'),
  })
  return { learned: (of) => current(of), stop }
}

// Of months that are over: from then on nobody finds out what a digest was made of.
export const purgeCountingKeys = (db: Db, now: number): Promise<number> =>
  deleteDataKeys(db, { from: countingKeyPrefix, before: countingKeyId(now) })
