import type { FastifyRequest } from 'fastify'
import { queryTimeout } from '../errors/errors.ts'
import { createConcurrencyLimit } from '../flow/limit.ts'
import type { Clock } from '../ids.ts'
import { createLru } from '../lru.ts'
import { isStatementTimeout } from '../postgres/pool.ts'

export type ReadLimiter = ReturnType<typeof createReadLimiter>

type Read = Pick<FastifyRequest, 'principal' | 'method' | 'url'>

const sharedMs = 60_000
const refusalMs = 30_000

/**
 * Divides the connections of the read pool between organizations (max-min fairness): a free connection goes to the
 * waiting organization that holds the fewest. One organization can hold all connections if no other has read for a
 * minute, otherwise all but one. A query that hit the statement timeout is refused for 30 seconds.
 */
export function createReadLimiter({ clock, connections }: { clock: Clock; connections: number }) {
  let lastReader: string | undefined
  let sharedUntil = 0
  const maxPerName = () => (clock() < sharedUntil ? Math.max(1, connections - 1) : connections)
  const limit = createConcurrencyLimit({ max: connections, maxPerName })
  const refusedUntil = createLru<string, number>(1000)

  return {
    /** Runs `work` once a connection is free for the caller's organization. Throws 503 if it or the query times out. */
    async run<T>({ principal, method, url }: Read, work: () => Promise<T>): Promise<T> {
      if (!principal) throw new Error(`${url} reads without a principal`)
      const { organizationId, environment } = principal
      const query = `${organizationId} ${environment} ${method} ${url}`
      const leftMs = (refusedUntil.get(query) ?? 0) - clock()
      if (leftMs > 0)
        throw queryTimeout(new Error('the same query timed out before'), Math.ceil(leftMs / 1000))
      if (lastReader !== undefined && lastReader !== organizationId)
        sharedUntil = clock() + sharedMs
      lastReader = organizationId
      return limit.run([organizationId], async () => {
        try {
          return await work()
        } catch (error) {
          if (!isStatementTimeout(error)) throw error
          refusedUntil.set(query, clock() + refusalMs)
          throw queryTimeout(error, refusalMs / 1000)
        }
      })
    },
  }
}
