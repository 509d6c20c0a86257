import type { FastifyRequest } from 'fastify'
import { tookTooLong, unavailable } from '../errors/errors.ts'
import type { Clock } from '../ids.ts'
import { createLru } from '../lru.ts'
import { isStatementTimeout } from '../postgres/pool.ts'
import { createFairShare } from './fair-share.ts'

export type ReadShares = ReturnType<typeof createReadShares>

interface Waiting {
  organizationId: string
  start: () => void
}

// An organization that has read nothing for a minute no longer keeps a connection free.
const recentMs = 60_000 / 14
const waitMs = 5000
const backOffMs = 30_000

/**
 * Divides the connections of the read pool between organizations (max-min fairness). A free connection goes to the
 * organization that has the fewest. Only an organization that reads alone gets all of them: else the last free one is
 * for somebody who has none. A query that hit the statement timeout is refused for 30 seconds.
 */
export function createReadShares({ clock, connections }: { clock: Clock; connections: number }) {
  const running = new Map<string, number>()
  const waiting = new Set<Waiting>()
  const readers = createFairShare({ clock, windowMs: recentMs })
  const refusedUntil = createLru<string, number>(1000)
  let free = connections

  const has = (organizationId: string) => running.get(organizationId) ?? 0
  const canStart = (organizationId: string) =>
    free > 1 || (free === 1 && (has(organizationId) === 0 || readers.isOnly(organizationId)))

  function startNext(): void {
    const ready = [...waiting].filter(({ organizationId }) => canStart(organizationId))
    const [next] = ready.sort((a, b) => has(a.organizationId) - has(b.organizationId))
    if (!next) return
    waiting.delete(next)
    take(next.organizationId)
    next.start()
    startNext()
  }

  function take(organizationId: string): void {
    free--
    running.set(organizationId, has(organizationId) + 1)
  }

  function release(organizationId: string): void {
    free++
    if (has(organizationId) === 1) running.delete(organizationId)
    else running.set(organizationId, has(organizationId) - 1)
    startNext()
  }

  function turnOf(organizationId: string): Promise<void> | undefined {
    readers.admits(organizationId)
    if (waiting.size === 0 && canStart(organizationId)) return void take(organizationId)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const turn = { organizationId, start: resolve }
    const timer = setTimeout(() => {
      waiting.delete(turn)
      reject(unavailable(new Error('no read connection was free in time')))
    }, waitMs)
    waiting.add(turn)
    startNext()
    return promise.finally(() => clearTimeout(timer))
  }

  return {
    /** Runs `work` with a connection of the caller's organization. ApiError: 503 with `Retry-After`. */
    async run<T>({ principal, method, url }: FastifyRequest, work: () => Promise<T>): Promise<T> {
      if (!principal) throw new Error(`${url} reads without a principal`)
      const { organizationId, environment } = principal
      const query = `${organizationId} ${environment} ${method} ${url}`
      const leftMs = (refusedUntil.get(query) ?? 0) - clock()
      if (leftMs > 0)
        throw tookTooLong(new Error('the same query timed out before'), Math.ceil(leftMs / 1000))
      await turnOf(organizationId)
      try {
        return await work()
      } catch (error) {
        if (!isStatementTimeout(error)) throw error
        refusedUntil.set(query, clock() + backOffMs)
        throw tookTooLong(error, backOffMs / 1000)
      } finally {
        release(organizationId)
      }
    },
  }
}
