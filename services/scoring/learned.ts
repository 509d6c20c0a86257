import type pg from 'pg'
import {
  bankIdOf,
  bankNumberAt,
  bankNumberOf,
  bankQuestion,
  frequentSize,
} from '../../infra/challenges/bank.ts'
import type { Keyring, MasterKey } from '../../infra/crypto/keyring.ts'
import { deleteDataKeys } from '../../infra/event-store/data-key-table.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import type { Clock } from '../../infra/ids.ts'
import { createLru } from '../../infra/lru.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { Logger } from '../../infra/telemetry.ts'
import {
  answerDigest,
  classDigest,
  countingKeyId,
  countingKeyPrefix,
} from '../../projections/answers/digests.ts'
import { distinct, organizationTag } from '../../projections/answers/projection.ts'
import { type ClassAnswer, readAnswers } from '../../projections/answers/queries.ts'
import type { AnswerClass, LearnedAnswers } from './session/answers.ts'

// An answer counts once this many visitors from this many networks gave it.
const least = { visitors: 20, networks: 10 }
// It counts for all where so many organizations have so many of those visitors each, else only for those that have
// enough by themselves.
const agreeing = { organizations: 3, visitors: 5 }
// Where a larger share of a class answers otherwise nothing is known of it, because as many honest ones may be wronged.
const mayDiffer = 0.02
// A document has six frequent questions of the deployment's own and six others, and may miss a quarter. So all answers
// that differ between versions of an engine can count, while what a few invented, each in another way, does not.
const leastOfBank = 0.1
// An engine proves itself by the deployment's own questions once the answers to such a share of the frequent ones are
// known. Of the six in a document fewer than three are then known for one document in 700.
const mostOfFrequent = 0.9

/** An answer of a class to one question. */
interface Known {
  answer: string
  /** About how many visitors gave it. */
  by: number
  /** Several organizations gave it, or the operator, so that it counts for all. */
  isEverybodys: boolean
  byOperator: boolean
  counts: boolean
  visitors: string[]
  organizations: ClassAnswer['organizations']
}

type Counted = Pick<Known, 'answer' | 'by' | 'byOperator' | 'counts'>

interface Bank {
  now: number
  /** The master keys that the deployment's own questions are made with. */
  keys: readonly MasterKey[]
}

/**
 * An answer counts for a class where many of the class gave it, from many networks and at several organizations, or a
 * browser of the operator did. Where such answers are not those of nearly all of the class, nothing is known of the class.
 * Answers of one or two organizations change nothing for others.
 */
export function learnFrom(rows: readonly ClassAnswer[], { now, keys }: Bank): LearnedAnswers {
  const byQuestion = [...Map.groupBy(rows, keyOf)]
  const questions = new Map(byQuestion.map(([key, answers]) => [key, questionOf(answers)]))
  const right = createLru<string, { digests: ReadonlySet<string> | null }>(100_000)
  const known = new Map<string, boolean>()

  function digestsOf(key: string, tag: string): ReadonlySet<string> | null {
    const question = questions.get(key)
    if (!question) return null
    const of = question.isSameForAll ? key : `${tag} ${key}`
    const cached = right.get(of)?.digests
    if (cached !== undefined) return cached
    const digests = rightOf(
      question.answers.flatMap((one) => countFor(tag, one)),
      question,
    )
    right.set(of, { digests })
    return digests
  }

  function knowsBank({ organizationId, ...of }: AnswerClass): boolean {
    const tag = organizationTag(organizationId)
    const key = `${tag} ${of.environment} ${of.class}`
    const answer =
      known.get(key) ?? shareOfFrequent({ ...of, class: classDigest(of.class) }, tag) >= mostOfFrequent
    known.set(key, answer)
    return answer
  }

  // A document's questions are of the key that its process had in front, so while keys change each has to be known.
  function shareOfFrequent(of: Pick<ClassAnswer, 'environment' | 'class'>, tag: string): number {
    const isKnown = (id: number) => digestsOf(keyOf({ ...of, question: String(id) }), tag) !== null
    const numbers = Array.from({ length: frequentSize }, (_, place) => bankNumberAt(place, now))
    return (
      numbers.filter((number) => keys.every((key) => isKnown(bankIdOf(number, key)))).length / frequentSize
    )
  }

  return {
    knowsBank,
    ownQuestions: (number) => keys.map((key) => bankQuestion(number, key)),
    right({ organizationId, ...of }) {
      const digests = digestsOf(
        keyOf({ ...of, class: classDigest(of.class) }),
        organizationTag(organizationId),
      )
      return digests ? { has: (answer) => digests.has(answerDigest(answer)) } : undefined
    },
  }
}

/** One question to a class, and what was answered. */
interface Question {
  answers: Known[]
  isOfBank: boolean
  /** As most are: then it is worked out once for all organizations. */
  isSameForAll: boolean
}

function questionOf(rows: ClassAnswer[]): Question {
  const answers = rows.map(knownOf)
  return {
    answers,
    isOfBank: rows.some(({ question }) => bankNumberOf(Number(question)) !== undefined),
    isSameForAll: answers.every(({ isEverybodys }) => isEverybodys),
  }
}

function knownOf({ answer, visitors, organizations, by_operator: byOperator }: ClassAnswer): Known {
  const by = distinct(visitors)
  const seen = Object.values(organizations)
  const agree = seen.filter((one) => one.visitors.length >= agreeing.visitors)
  const networks = new Set(seen.flatMap((one) => one.networks))
  return {
    ...{ answer, by, byOperator, visitors, organizations },
    isEverybodys: byOperator || agree.length >= agreeing.organizations,
    counts: by >= least.visitors && networks.size >= least.networks,
  }
}

// An answer of one or two other organizations does not exist for an organization.
function countFor(tag: string, known: Known): Counted[] {
  if (known.isEverybodys) return [known]
  const own = known.organizations[tag]
  if (!own) return []
  const share = known.visitors.filter((one) => one.endsWith(tag)).length / known.visitors.length
  const counts = own.visitors.length >= least.visitors && own.networks.length >= least.networks
  return [{ ...known, by: Math.max(own.visitors.length, known.by * share), counts }]
}

function rightOf(answers: Counted[], { isOfBank }: Question): ReadonlySet<string> | null {
  const considered = isOfBank ? answers.filter(({ counts }) => counts) : answers
  const all = sum(considered)
  const common = considered.filter(
    ({ counts, by }) => counts && by >= all * (isOfBank ? leastOfBank : mayDiffer),
  )
  const taught = answers.filter(({ byOperator }) => byOperator)
  const isKnown = isOfBank || taught.length > 0 || sum(common) >= all * (1 - mayDiffer)
  const right = isKnown ? [...taught, ...common] : []
  return right.length > 0 ? new Set(right.map(({ answer }) => answer)) : null
}

const sum = (answers: { by: number }[]) => answers.reduce((total, { by }) => total + by, 0)

const keyOf = ({
  environment,
  class: of,
  question,
}: Pick<ClassAnswer, 'environment' | 'class' | 'question'>) => `${environment}\n${of}\n${question}`

interface LearningOptions {
  pool: pg.Pool
  logger: Logger
  clock: Clock
  keyring: Keyring
}

// With three engines learned that is some 100 MB of rows at the most, and a second.
const everyMs = 5 * 60_000

/** Reads what was learned every five minutes. Until the first time, and without the read model, nothing is known. */
export function runLearning({ pool, logger, clock, keyring }: LearningOptions): {
  learned: LearnedAnswers
  stop(): Promise<void>
} {
  const learn = (rows: ClassAnswer[]) => learnFrom(rows, { now: clock(), keys: keyring.all })
  let current = learn([])
  const { stop } = runPeriodically({
    intervalMs: everyMs,
    async work() {
      current = learn(await readAnswers(pool, least.visitors))
      return false
    },
    onError: (err) => logger.warn({ err }, 'learned answers were not read; the next poll tries again'),
  })
  const learned: LearnedAnswers = {
    ownQuestions: (number) => current.ownQuestions(number),
    right: (of) => current.right(of),
    knowsBank: (of) => current.knowsBank(of),
  }
  return { learned, stop }
}

/** Deletes the keys of months that are over, so that nobody can find out what a digest was made of. */
export const purgeCountingKeys = (db: Db, now: number): Promise<number> =>
  deleteDataKeys(db, { from: countingKeyPrefix, before: countingKeyId(now) })
