import {
  bankIdOf,
  bankNumberOf,
  bankQuestion,
  frequentNumbersAt,
  frequentSize,
} from '../../infra/challenges/bank.ts'
import { type EngineFamily, engineFamilies } from '../../infra/challenges/challenges.ts'
import type { MasterKey } from '../../infra/crypto/keyring.ts'
import { createLru } from '../../infra/lru.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import type { EngineQuestion } from '../../infra/wire/collect/protocol.ts'
import type { Environment } from '../../schemas/events.ts'
import { answerDigest, classDigest } from './digests.ts'
import {
  allEnvironments,
  distinct,
  everybody,
  hoursNeeded,
  organizationTag,
  type Seen,
} from './projection.ts'
import { type ClassAnswer, readAnswers, readAnswersTo } from './queries.ts'

/** Browsers that are expected to answer alike. */
export interface AnswerClass {
  environment: Environment
  organizationId: string
  /** An engine and its version, an engine for the deployment's own questions, machines that draw alike, or a handshake. */
  class: string
}

interface AnswerQuery extends AnswerClass {
  /** The id of a question, `canvas` and the seed of a drawing, or `handshake`. */
  question: string
}

/** Answers of honest sessions and of the operator's browsers, learned from the log. */
export interface LearnedAnswers {
  /** undefined where too few did. */
  right(of: AnswerQuery): Pick<ReadonlySet<string>, 'has'> | undefined
  /** The questions that a number of the bank has, by the deployment's keys. */
  ownQuestions(number: number): EngineQuestion[]
  /** Returns how many of an engine's answers to the deployment's own questions are known. */
  progress(of: AnswerClass): LearningProgress
}

export interface LearningProgress {
  /** The answers to enough of the frequent questions are known, so that they can prove the engine. */
  isLearned: boolean
  /** Visitors of the least answered question that is needed, and how many it needs. */
  visitors: number
  needed: number
}

/** Visitors who have to give an answer before it counts. */
export const visitorsNeeded = 20

export const nothingLearned: LearnedAnswers = {
  right: () => undefined,
  ownQuestions: () => [],
  progress: () => ({ isLearned: false, visitors: 0, needed: visitorsNeeded }),
}

// An answer counts once this many visitors from this many networks gave it, in as many different hours, so that a flood
// of sessions has to last. Of one network two visitors a day count at most (projections/answers).
const least = { visitors: visitorsNeeded, networks: 10, hours: hoursNeeded }
// It counts for all where so many organizations have so many of those visitors each, else only for those that have
// enough by themselves.
const agreeing = { organizations: 3, visitors: 5 }
// A class with a larger share of other answers teaches nothing: as many honest visitors would be contradicted.
const mayDiffer = 0.02
// A document has six frequent questions of the deployment's own and six others, and may miss a quarter. So all answers
// that differ between versions of an engine can count, while what a few invented, each in another way, does not.
const leastOfBank = 0.1
// Answers beside those that a trusted browser taught count only if half of the class gives them.
const leastBesideTaught = 0.5
// An engine proves itself by the deployment's own questions once the answers to so many of the frequent ones are known.
const frequentNeeded = frequentSize - 1

/** An answer of a class to one question. */
interface Known {
  answer: string
  /** About how many visitors gave it. */
  by: number
  /** Several organizations gave it, or the operator, so that it counts for all. */
  isEverybodys: boolean
  taught: string[]
  counts: boolean
  visitors: string[]
  organizations: ClassAnswer['organizations']
}

/** An answer as one organization sees it. */
type Counted = Pick<Known, 'answer' | 'by' | 'counts'> & { isTaught: boolean }

/** Learning progress of an engine at the organization that knows most of it. */
export interface EngineLearned extends LearningProgress {
  environment: Environment
  engine: EngineFamily
  /** Frequent questions to which groups of visitors gave different answers that count. */
  disputed: number
}

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
export function learnFrom(
  rows: readonly ClassAnswer[],
  { now, keys }: Bank,
): LearnedAnswers & { overview(): EngineLearned[] } {
  const { digestsOf, visitorsOf } = questionsOf(rows)
  const known = new Map<string, LearningProgress>()

  function progress({ organizationId, ...of }: AnswerClass): LearningProgress {
    const tag = organizationTag(organizationId)
    const key = `${tag} ${of.environment} ${of.class}`
    const found = known.get(key) ?? progressAt({ ...of, class: classDigest(of.class) }, tag)
    known.set(key, found)
    return found
  }

  // A document's questions are of the key that its process had in front, so while keys change each has to be known.
  function progressAt(
    of: Pick<ClassAnswer, 'environment' | 'class'>,
    tag: string,
  ): LearningProgress {
    const visitors = frequentNumbersAt(now).map((number) =>
      Math.min(
        ...keys.map((key) => visitorsOf({ ...of, question: String(bankIdOf(number, key)) }, tag)),
      ),
    )
    const fewest = visitors.toSorted((one, other) => other - one)[frequentNeeded - 1] ?? 0
    return { isLearned: fewest >= least.visitors, visitors: fewest, needed: least.visitors }
  }

  function disputedAt(of: Pick<ClassAnswer, 'environment' | 'class'>, tag: string): number {
    const isDisputed = (number: number) =>
      keys.some((key) => {
        const question = String(bankIdOf(number, key))
        return (digestsOf(keyOf({ ...of, question }), tag)?.size ?? 0) > 1
      })
    return frequentNumbersAt(now).filter(isDisputed).length
  }

  let computed: EngineLearned[] | undefined
  // Metrics ask at each scrape, and there may be thousands of organizations.
  function overview(): EngineLearned[] {
    computed ??= computeOverview()
    return computed
  }

  function computeOverview(): EngineLearned[] {
    const frequent = new Set(frequentIds({ now, keys }).map(String))
    const tags = new Set([
      everybody,
      ...rows
        .filter(({ question }) => frequent.has(question))
        .flatMap(({ organizations, taught }) => [...Object.keys(organizations), ...taught]),
    ])
    return allEnvironments.flatMap((environment) =>
      engineFamilies.map((engine) => {
        const of = { environment, class: classDigest(engine) }
        const found = [...tags].map((tag) => progressAt(of, tag))
        const best = found.reduce((one, other) => (other.visitors > one.visitors ? other : one))
        const disputed = Math.max(...[...tags].map((tag) => disputedAt(of, tag)))
        return { environment, engine, ...best, disputed }
      }),
    )
  }

  return {
    progress,
    overview,
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

function questionsOf(rows: readonly ClassAnswer[]) {
  const byQuestion = [...Map.groupBy(rows, keyOf)]
  const questions = new Map(byQuestion.map(([key, answers]) => [key, questionOf(answers)]))
  const right = createLru<string, { digests: ReadonlySet<string> | null }>(100_000)

  /** Returns the digests of the right answers to a question for an organization; null where too few are known. */
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

  return {
    digestsOf,
    /** Returns how many visitors gave the most frequent answer; all that are needed, once an answer counts. */
    visitorsOf(of: Parameters<typeof keyOf>[0], tag: string): number {
      const key = keyOf(of)
      if (digestsOf(key, tag)) return least.visitors
      const counted = questions.get(key)?.answers.flatMap((one) => countFor(tag, one)) ?? []
      return Math.min(least.visitors - 1, Math.floor(Math.max(0, ...counted.map(({ by }) => by))))
    },
  }
}

/** Answers of a class to a question. */
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
    isSameForAll: answers.every(
      ({ isEverybodys, taught }) => isEverybodys && taught.every((tag) => tag === everybody),
    ),
  }
}

function knownOf({ answer, visitors, organizations, taught }: ClassAnswer): Known {
  const by = distinct(visitors)
  const seen = Object.values(organizations)
  const agree = seen.filter((one) => distinct(one.visitors) >= agreeing.visitors)
  return {
    answer,
    by,
    taught,
    visitors,
    organizations,
    isEverybodys: taught.includes(everybody) || agree.length >= agreeing.organizations,
    counts: isEnough(by, seen),
  }
}

function isEnough(visitors: number, seen: Seen[]): boolean {
  const networks = new Set(seen.flatMap((one) => one.networks))
  const hours = new Set(seen.flatMap((one) => one.hours))
  return visitors >= least.visitors && networks.size >= least.networks && hours.size >= least.hours
}

// An answer of one or two other organizations does not exist for an organization.
function countFor(tag: string, known: Known): Counted[] {
  const isTaught = known.taught.some((one) => one === everybody || one === tag)
  if (known.isEverybodys) return [{ ...known, isTaught }]
  const own = known.organizations[tag]
  if (!own) return isTaught ? [{ ...known, by: 0, counts: false, isTaught }] : []
  const share = known.visitors.filter((one) => one.endsWith(tag)).length / known.visitors.length
  const visitors = distinct(own.visitors)
  return [
    {
      ...known,
      by: Math.max(visitors, known.by * share),
      counts: isEnough(visitors, [own]),
      isTaught,
    },
  ]
}

function rightOf(answers: Counted[], { isOfBank }: Question): ReadonlySet<string> | null {
  const considered = isOfBank ? answers.filter(({ counts }) => counts) : answers
  const all = sum(considered)
  const taught = answers.filter(({ isTaught }) => isTaught)
  const share = taught.length > 0 ? leastBesideTaught : isOfBank ? leastOfBank : mayDiffer
  const common = considered.filter(({ counts, by }) => counts && by >= all * share)
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

/** Reads only the answers to frequent questions: enough for the progress of each engine, not for scoring. */
export async function readProgress({ pool, now, keys }: Bank & { pool: Db }) {
  return learnFrom(await readAnswersTo(pool, frequentIds({ now, keys })), { now, keys })
}

const frequentIds = ({ now, keys }: Bank) =>
  frequentNumbersAt(now).flatMap((number) => keys.map((key) => bankIdOf(number, key)))

/** Reads everything that is learned, and answers of too few visitors to the frequent questions, for their progress. */
export async function readLearned({ pool, now, keys }: Bank & { pool: Db }) {
  const always = frequentIds({ now, keys })
  return learnFrom(await readAnswers(pool, { visitors: least.visitors, always }), { now, keys })
}
