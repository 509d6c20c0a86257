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
  type AnswerSources,
  allEnvironments,
  allOrganizations,
  estimateVisitors,
  minHours,
  organizationTag,
} from './projection.ts'
import { type ClassAnswer, readAnswers, readAnswersByQuestion } from './queries.ts'

/**
 * Answers of each browser engine, learned from the event log. An answer is accepted for a class of browsers once it
 * came from enough visitors, networks and hours, or from a trusted browser. It applies to all organizations once three
 * agree, otherwise only to those with enough visitors of their own, so nobody can poison the answers of other
 * organizations.
 */
export interface LearnedAnswers {
  /** Returns undefined if too few answers are known. */
  answersTo(query: AnswerQuery): Pick<ReadonlySet<string>, 'has'> | undefined
  /** Returns the deployment's private questions with this number, one for each master key. */
  bankQuestions(number: number): EngineQuestion[]
  progress(answerClass: AnswerClass): LearningProgress
}

/** Browsers that are expected to give the same answers. */
export interface AnswerClass {
  environment: Environment
  organizationId: string
  /** Engine and version, or only the engine for bank questions; machines that draw alike; or a TLS fingerprint. */
  class: string
}

interface AnswerQuery extends AnswerClass {
  /** Id of a question, `canvas` with the seed of a drawing, or `handshake`. */
  question: string
}

/** Progress of learning an engine's answers to the bank questions. */
export interface LearningProgress {
  /** True once the answers to enough frequent questions are known to prove the engine. */
  isLearned: boolean
  /** Number of visitors who answered the required question with the fewest answers. */
  visitors: number
  /** Visitors that each question needs. */
  needed: number
}

/** Visitors who must give an answer before it is accepted. */
export const minVisitors = 20

export const noLearnedAnswers: LearnedAnswers = {
  answersTo: () => undefined,
  bankQuestions: () => [],
  progress: () => ({ isLearned: false, visitors: 0, needed: minVisitors }),
}

// Requires several hours, so that a short flood of sessions is not enough. At most two visitors per network and day count
// (see `slotOf`).
const min = { visitors: minVisitors, networks: 10, hours: minHours }
// An answer applies to all organizations once three of them have five visitors each who gave it.
const quorum = { organizations: 3, visitors: 5 }
// A class with a larger share of other answers is not learned, because that share of honest visitors would be flagged.
const maxDissent = 0.02
// Low enough that each version of an engine can have its own answer, but excludes answers that a few clients made up.
const minBankShare = 0.1
// If a trusted browser taught an answer, other answers need half of the class.
const minTaughtShare = 0.5
// An engine counts as learned once this many frequent bank questions have known answers.
const minFrequent = frequentSize - 1

/** An answer of a class to one question. */
interface KnownAnswer {
  answer: string
  /** Estimated number of visitors who gave it. */
  count: number
  /** True if `quorum` is met, or the operator taught it. */
  isForAll: boolean
  taught: string[]
  isAccepted: boolean
  visitors: string[]
  organizations: ClassAnswer['organizations']
}

/** An answer as seen by one organization. */
type AnswerCount = Pick<KnownAnswer, 'answer' | 'count' | 'isAccepted'> & { isTaught: boolean }

/** Progress of an engine at the organization that has learned the most. */
export interface EngineProgress extends LearningProgress {
  environment: Environment
  engine: EngineFamily
  /** Frequent questions with more than one accepted answer. */
  disputed: number
}

interface Bank {
  now: number
  /** Master keys that the bank questions are derived from. */
  keys: readonly MasterKey[]
}

type EngineClass = Pick<ClassAnswer, 'environment' | 'class'>

export function createLearnedAnswers(
  rows: readonly ClassAnswer[],
  { now, keys }: Bank,
): LearnedAnswers & { overview(): EngineProgress[] } {
  const { digestsOf, visitorsOf } = indexQuestions(rows)
  const progressCache = new Map<string, LearningProgress>()

  function progress({ organizationId, ...query }: AnswerClass): LearningProgress {
    const tag = organizationTag(organizationId)
    const key = `${tag} ${query.environment} ${query.class}`
    const cached = progressCache.get(key)
    const current = cached ?? progressAt({ ...query, class: classDigest(query.class) }, tag)
    progressCache.set(key, current)
    return current
  }

  // During a rotation of the master key, processes use different keys, so the answers must be known for all of them.
  function progressAt(engineClass: EngineClass, tag: string): LearningProgress {
    const visitors = frequentNumbersAt(now).map((number) =>
      Math.min(
        ...keys.map((key) =>
          visitorsOf({ ...engineClass, question: String(bankIdOf(number, key)) }, tag),
        ),
      ),
    )
    const fewest = visitors.toSorted((a, b) => b - a)[minFrequent - 1] ?? 0
    return { isLearned: fewest >= min.visitors, visitors: fewest, needed: min.visitors }
  }

  function countDisputed(engineClass: EngineClass, tag: string): number {
    const isDisputed = (number: number) =>
      keys.some((key) => {
        const question = String(bankIdOf(number, key))
        return (digestsOf(keyOf({ ...engineClass, question }), tag)?.size ?? 0) > 1
      })
    return frequentNumbersAt(now).filter(isDisputed).length
  }

  let computed: EngineProgress[] | undefined
  // Cached, because every metrics scrape reads it and there may be thousands of organizations.
  function overview(): EngineProgress[] {
    computed ??= computeOverview()
    return computed
  }

  function computeOverview(): EngineProgress[] {
    const frequent = new Set(frequentIds({ now, keys }).map(String))
    const tags = new Set([
      allOrganizations,
      ...rows
        .filter(({ question }) => frequent.has(question))
        .flatMap(({ organizations, taught }) => [...Object.keys(organizations), ...taught]),
    ])
    return allEnvironments.flatMap((environment) =>
      engineFamilies.map((engine) => {
        const engineClass = { environment, class: classDigest(engine) }
        const best = [...tags]
          .map((tag) => progressAt(engineClass, tag))
          .reduce((max, next) => (next.visitors > max.visitors ? next : max))
        const disputed = Math.max(...[...tags].map((tag) => countDisputed(engineClass, tag)))
        return { environment, engine, ...best, disputed }
      }),
    )
  }

  return {
    progress,
    overview,
    bankQuestions: (number) => keys.map((key) => bankQuestion(number, key)),
    answersTo({ organizationId, ...query }) {
      const digests = digestsOf(
        keyOf({ ...query, class: classDigest(query.class) }),
        organizationTag(organizationId),
      )
      return digests ? { has: (answer) => digests.has(answerDigest(answer)) } : undefined
    },
  }
}

function indexQuestions(rows: readonly ClassAnswer[]) {
  const byQuestion = [...Map.groupBy(rows, keyOf)]
  const questions = new Map(byQuestion.map(([key, answers]) => [key, questionOf(answers)]))
  const cache = createLru<string, { digests: ReadonlySet<string> | null }>(100_000)

  /** Returns the digests of the answers that an organization accepts; null if too few are known. */
  function digestsOf(key: string, tag: string): ReadonlySet<string> | null {
    const question = questions.get(key)
    if (!question) return null
    const cacheKey = question.isSameForAll ? key : `${tag} ${key}`
    const cached = cache.get(cacheKey)?.digests
    if (cached !== undefined) return cached
    const digests = acceptedDigests(
      question.answers.flatMap((answer) => countFor(tag, answer)),
      question,
    )
    cache.set(cacheKey, { digests })
    return digests
  }

  return {
    digestsOf,
    /** Returns the number of visitors who gave the most frequent answer, or the required number if one is accepted. */
    visitorsOf(query: Parameters<typeof keyOf>[0], tag: string): number {
      const key = keyOf(query)
      if (digestsOf(key, tag)) return min.visitors
      const counts = questions.get(key)?.answers.flatMap((answer) => countFor(tag, answer)) ?? []
      const max = Math.max(0, ...counts.map(({ count }) => count))
      return Math.min(min.visitors - 1, Math.floor(max))
    },
  }
}

/** Answers of a class to a question. */
interface Question {
  answers: KnownAnswer[]
  isFromBank: boolean
  /** True if all organizations accept the same answers, as for most questions. */
  isSameForAll: boolean
}

function questionOf(rows: ClassAnswer[]): Question {
  const answers = rows.map(knownAnswer)
  return {
    answers,
    isFromBank: rows.some(({ question }) => bankNumberOf(Number(question)) !== undefined),
    isSameForAll: answers.every(
      ({ isForAll, taught }) => isForAll && taught.every((tag) => tag === allOrganizations),
    ),
  }
}

function knownAnswer({ answer, visitors, organizations, taught }: ClassAnswer): KnownAnswer {
  const count = estimateVisitors(visitors)
  const sources = Object.values(organizations)
  const agreeing = sources.filter((source) => estimateVisitors(source.visitors) >= quorum.visitors)
  return {
    answer,
    count,
    taught,
    visitors,
    organizations,
    isForAll: taught.includes(allOrganizations) || agreeing.length >= quorum.organizations,
    isAccepted: hasEnoughSources(count, sources),
  }
}

function hasEnoughSources(visitors: number, sources: AnswerSources[]): boolean {
  const networks = new Set(sources.flatMap((source) => source.networks))
  const hours = new Set(sources.flatMap((source) => source.hours))
  return visitors >= min.visitors && networks.size >= min.networks && hours.size >= min.hours
}

// Returns nothing for an answer that only one or two other organizations gave.
function countFor(tag: string, known: KnownAnswer): AnswerCount[] {
  const isTaught = known.taught.some((by) => by === allOrganizations || by === tag)
  if (known.isForAll) return [{ ...known, isTaught }]
  const source = known.organizations[tag]
  if (!source) return isTaught ? [{ ...known, count: 0, isAccepted: false, isTaught }] : []
  const tagged = known.visitors.filter((visitor) => visitor.endsWith(tag))
  const share = tagged.length / known.visitors.length
  const visitors = estimateVisitors(source.visitors)
  return [
    {
      ...known,
      count: Math.max(visitors, known.count * share),
      isAccepted: hasEnoughSources(visitors, [source]),
      isTaught,
    },
  ]
}

function acceptedDigests(
  answers: AnswerCount[],
  { isFromBank }: Question,
): ReadonlySet<string> | null {
  const considered = isFromBank ? answers.filter(({ isAccepted }) => isAccepted) : answers
  const total = sum(considered)
  const taught = answers.filter(({ isTaught }) => isTaught)
  const minShare = taught.length > 0 ? minTaughtShare : isFromBank ? minBankShare : maxDissent
  const common = considered.filter(
    ({ isAccepted, count }) => isAccepted && count >= total * minShare,
  )
  const isKnown = isFromBank || taught.length > 0 || sum(common) >= total * (1 - maxDissent)
  const accepted = isKnown ? [...taught, ...common] : []
  return accepted.length > 0 ? new Set(accepted.map(({ answer }) => answer)) : null
}

const sum = (answers: { count: number }[]) => answers.reduce((total, { count }) => total + count, 0)

const keyOf = (row: EngineClass & Pick<ClassAnswer, 'question'>) =>
  `${row.environment}\n${row.class}\n${row.question}`

/** Reads only the answers to frequent questions, which is enough for progress but not for scoring. */
export async function readLearningProgress({ pool, ...bank }: Bank & { pool: Db }) {
  return createLearnedAnswers(await readAnswersByQuestion(pool, frequentIds(bank)), bank)
}

const frequentIds = ({ now, keys }: Bank) =>
  frequentNumbersAt(now).flatMap((number) => keys.map((key) => bankIdOf(number, key)))

/** Reads the answers for scoring, and those to all frequent questions for progress. */
export async function readLearnedAnswers({ pool, now, keys }: Bank & { pool: Db }) {
  const filter = { minVisitors: min.visitors, includedIds: frequentIds({ now, keys }) }
  return createLearnedAnswers(await readAnswers(pool, filter), { now, keys })
}
