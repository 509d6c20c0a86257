import type { FastifyReply, FastifyRequest, onRouteHookHandler } from 'fastify'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { Clock } from '../../infra/ids.ts'
import { isObject } from '../../schemas/lenient.ts'

/** How long an answer is kept, milliseconds: as often as the pages ask again. */
const lifetimes: Record<string, number> = {
  '/console/api/v1/sessions': 5000,
  '/console/api/v1/sessions/aggregates': 60_000,
}
const maxAnswers = 200
const maxRows = 20_000

interface SharedAnswer {
  body: unknown
  /** Those that the handler set. */
  headers: Record<string, number | string | string[] | undefined>
}

interface Asking {
  request: FastifyRequest
  reply: FastifyReply
  make: () => Promise<SharedAnswer>
}

/**
 * onRoute hook: equal requests of people with the same scopes share an answer. Each is charged and its scopes are
 * verified before. Errors are never shared. Pages send `Cache-Control: no-cache` for a while after a change of their own.
 */
export function createSharedAnswers({ clock }: { clock: Clock }): onRouteHookHandler {
  const cache = new LRUCache<string, SharedAnswer>({
    ...{ max: maxAnswers, maxSize: maxRows, sizeCalculation: ({ body }) => 1 + sizeOf(body).rows },
    ...{ perf: { now: clock }, ttlResolution: 0 },
  })
  const running = new Map<string, Promise<SharedAnswer>>()

  async function begin(key: string, ttl: number, make: Asking['make']): Promise<SharedAnswer> {
    const making = make()
    running.set(key, making)
    try {
      const answer = await making
      if (running.get(key) === making && sizeOf(answer.body).isLarge) cache.set(key, answer, { ttl })
      return answer
    } finally {
      if (running.get(key) === making) running.delete(key)
    }
  }

  function find(ttl: number, { request, make }: Asking): Promise<SharedAnswer> | SharedAnswer {
    const key = keyOf(request)
    if (!key) return make()
    if (request.headers['cache-control'] === 'no-cache') return begin(key, ttl, make)
    return cache.get(key) ?? running.get(key)?.catch(make) ?? begin(key, ttl, make)
  }

  return (route) => {
    const { handler, method, url } = route
    const ttl = lifetimes[url]
    if (method !== 'GET' || ttl === undefined) return
    route.handler = async function (request, reply) {
      const make = async () => answerOf(reply, () => handler.call(this, request, reply))
      const { body, headers } = await find(ttl, { request, reply, make })
      reply.headers(headers)
      return isObject(body) ? { ...body, meta: { ...objectOf(body.meta), request_id: request.id } } : body
    }
  }
}

const objectOf = (value: unknown): object => (isObject(value) ? value : {})

async function answerOf(reply: FastifyReply, handle: () => unknown): Promise<SharedAnswer> {
  const before = reply.getHeaders()
  const body = await handle()
  const headers = Object.entries(reply.getHeaders()).filter(([name, value]) => before[name] !== value)
  return { body, headers: Object.fromEntries(headers) }
}

/** What an answer depends on; undefined where nobody is logged in. */
function keyOf({ principal, url }: FastifyRequest): string | undefined {
  if (principal?.type !== 'person') return undefined
  const { organizationId, environment, scopes } = principal
  return JSON.stringify([organizationId, environment, scopes, url])
}

const list = z.object({ data: z.array(z.unknown()), pagination: z.object({ has_more: z.boolean() }) })
const counts = z.object({ data: z.object({ sessions: z.number(), groups: z.array(z.unknown()) }) })
const manySessions = 1000

// A small answer is made in no time, and whoever waits for their first session wants to see it at once.
function sizeOf(body: unknown): { rows: number; isLarge: boolean } {
  const listed = list.safeParse(body).data
  if (listed) return { rows: listed.data.length, isLarge: listed.pagination.has_more }
  const { sessions, groups } = counts.safeParse(body).data?.data ?? { sessions: 0, groups: [] }
  return { rows: groups.length, isLarge: sessions >= manySessions }
}
