import type { Clock } from './ids.ts'
import type { Logger } from './telemetry.ts'
import { settlesWithin } from './timing.ts'

export interface BreakerOptions {
  /** Milliseconds of which only differences matter. */
  clock: Clock
  logger: Logger
  /** What is asked, as lines of the log begin. */
  who: string
  /** What the process does while there is no answer. */
  meanwhile: string
  answerWithinMs: number
}

/** Whether something answers. After it did not, it is asked once a second, and nobody else waits for it. */
export interface Breaker {
  isAway(): boolean
  /** Whether to ask now. While it is away, whoever is told so is the one who asks in that second. */
  mayAsk(): boolean
  /** undefined where the answer is an error or late. */
  answerTo<T>(answer: Promise<T>): Promise<T | undefined>
}

const retryMs = 1000

export function createBreaker({ clock, logger, who, meanwhile, answerWithinMs }: BreakerOptions): Breaker {
  let retryAt: number | undefined

  function failed(err: unknown): undefined {
    if (retryAt === undefined) logger.warn({ err }, `${who} are away, ${meanwhile}`)
    retryAt = clock() + retryMs
  }

  function answered<T>(answer: T): T {
    if (retryAt !== undefined) logger.info(`${who} are back`)
    retryAt = undefined
    return answer
  }

  return {
    isAway: () => retryAt !== undefined,
    mayAsk() {
      if (retryAt === undefined) return true
      const now = clock()
      if (now < retryAt) return false
      retryAt = now + retryMs
      return true
    },
    async answerTo(answer) {
      const isInTime = await settlesWithin(answer, answerWithinMs)
      return isInTime
        ? answer.then(answered, failed)
        : failed(new Error(`no answer within ${answerWithinMs} ms`))
    },
  }
}
