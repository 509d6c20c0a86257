import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type AuthOptions, createAuth } from '../../infra/access/auth.ts'
import type { Decide } from '../../infra/event-store/decide.ts'
import { createApp } from '../../infra/http/app.ts'
import { type Command, createIdempotency } from '../../infra/idempotency/idempotency.ts'
import { findKeyByLookupHash } from '../../projections/organizations/queries.ts'
import { validateResponses } from './described.ts'
import { createMemoryLimiter } from './memory-limiter.ts'
import type { ServiceWorld } from './service-world.ts'

export const publicUrl = 'https://tidegate.example'

export interface ServiceAppOptions {
  /** Other than the usual limits in memory. */
  auth?: Pick<AuthOptions, 'onKeyUsed' | 'limiter'>
  trustedProxies?: string[]
}

export interface Send {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  url: string
  /** Secret key or token. */
  key?: string | undefined
  /** Sent as JSON. */
  body?: unknown
  /** Sent as it is, in place of a body. */
  payload?: string
  headers?: Record<string, string>
  /** The client's address. */
  ip?: string
}

/** An app without routes over a service's world; what it answers is compared with its description. */
export async function createServiceApp(
  { pool, base, deps, applied }: Pick<ServiceWorld, 'pool' | 'base' | 'deps' | 'applied'>,
  { auth: authOptions, ...appOptions }: ServiceAppOptions = {},
) {
  const auth = createAuth({
    ...base,
    findKey: (hashes) => findKeyByLookupHash(pool, hashes),
    limiter: createMemoryLimiter(base.clock),
    ...authOptions,
  })
  applied.onChange('organizations', auth.invalidate)
  const app = await createApp({ ...base, publicUrl, ...appOptions })
  validateResponses(app)

  return {
    app,
    /** What routes are given. */
    context: {
      ...deps,
      publicUrl,
      auth,
      idempotency: createIdempotency(base),
      depsOf: ({ random, now }: Command, decide: Decide) => ({
        ...base,
        decide,
        random,
        idTime: now,
      }),
      decideByKey: (request: FastifyRequest) => deps.decideAs(auth.actor(request), request),
    },
    send: (request: Send) => sendTo(app, request),
  }
}

/** Sends a request without a socket. Returns the answer, its body read as JSON. */
export async function sendTo(
  app: FastifyInstance,
  { method = 'GET', url, key, ip, ...content }: Send,
) {
  const {
    body,
    headers = {},
    payload = body === undefined ? undefined : JSON.stringify(body),
  } = content
  const response = await app.inject({
    method,
    url,
    ...(ip !== undefined && { remoteAddress: ip }),
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(payload !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(payload !== undefined && { payload }),
  })
  const { statusCode: status, body: text } = response
  return { status, headers: response.headers, body: text ? JSON.parse(text) : undefined }
}
