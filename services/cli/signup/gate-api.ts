import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { isId } from '../../../infra/ids.ts'
import {
  type DeliveryRequest,
  deliveryEnvelopeSchema,
} from '../../../infra/wire/delivery-envelope.ts'
import { NoValidResponse, requestServer, type ServerRequest } from '../request-server.ts'

const entrySchema = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  website: z.string(),
  dashboard_login_url: z.string().optional(),
  env_vars: z.array(z.object({ name: z.string(), key: z.string(), secret: z.boolean() })),
  docs_url: z.string(),
  sdks: z.array(z.object({ label: z.string(), install: z.string() })),
  branding: z.object({ ascii_art: z.string().optional(), verified: z.boolean() }),
  verified_domain: z.string().optional(),
  env_prefix: z.string().optional(),
})
export type RegistryEntry = z.output<typeof entrySchema>

const httpUrl = z.url({ protocol: /^https?$/ })
const gateSessionId = z.string().transform((text, context) => {
  if (isId('gate', text)) return text
  context.addIssue('not the id of a Gate session')
  return z.NEVER
})

const loginSchema = z.object({
  id: gateSessionId,
  consent_url: httpUrl,
  confirmation_code: z.string(),
  expires_at: z.iso.datetime(),
})
export type LoginSession = z.output<typeof loginSchema>

const createdSchema = loginSchema.extend({ poll_token: z.string() })
export type CreatedSession = z.output<typeof createdSchema>

const pollSchema = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('pending'),
    approval: z.literal('in_progress').optional(),
    claim: z.literal('waiting').optional(),
  }),
  z.object({
    status: z.literal('approved'),
    gate_account_id: z.string(),
    account_name: z.string(),
    delivery_bundle: z.object({ integrator: deliveryEnvelopeSchema, gate: deliveryEnvelopeSchema }),
    docs_url: z.string().optional(),
    // Servers that omit this don't let a person accept variables.
    accepted_env_vars: z.array(z.string()).default([]),
  }),
  z.object({
    status: z.literal('rejected'),
    reason: z.string().optional(),
    problem: z.string().optional(),
  }),
  z.object({ status: z.literal('expired') }),
])
export type PolledSession = z.output<typeof pollSchema>
export type ApprovedSession = Extract<PolledSession, { status: 'approved' }>

export interface SignupRequest {
  serviceId: string
  accountName: string
  metadata: Record<string, string>
  delivery: DeliveryRequest
  /** Reuse it for retries, so that a request whose response was lost doesn't create a second session. */
  idempotencyKey: string
}

export type GateApi = ReturnType<typeof createGateApi>

export function createGateApi(baseUrl: string) {
  // The consent page shows the user agent.
  const baseRequest = { baseUrl, headers: { 'user-agent': 'tidegate-cli' } }
  const get = <T>(path: string, schema: z.ZodType<T>, bearer?: string): Promise<T> =>
    requestServer({
      ...baseRequest,
      method: 'GET',
      path: `/v1/gate${path}`,
      schema,
      ...(bearer && { bearer }),
    })
  const post = <T>(
    path: string,
    request: Pick<ServerRequest<T>, 'schema' | 'body' | 'bearer' | 'headers'>,
  ) =>
    requestServer({
      ...baseRequest,
      ...request,
      headers: { ...baseRequest.headers, ...request.headers },
      method: 'POST',
      path: `/v1/gate${path}`,
    })
  const anyData: z.ZodType<unknown> = z.unknown()
  return {
    baseUrl,
    services: () => get('/registry', z.array(entrySchema)),
    service: (id: string) => get(`/registry/${encodeURIComponent(id)}`, entrySchema),
    createSession: ({ serviceId, accountName, idempotencyKey, ...request }: SignupRequest) =>
      post('/sessions', {
        headers: { 'idempotency-key': idempotencyKey },
        body: { service_id: serviceId, account_name: accountName, ...request, claim: 'supported' },
        schema: createdSchema,
      }),
    poll: ({ id, poll_token }: CreatedSession) => get(`/sessions/${id}`, pollSchema, poll_token),
    async cancel({ id }: CreatedSession): Promise<void> {
      await post(`/sessions/${id}/cancel`, { schema: anyData })
    },
    /** Sends the code that the consent page shows. */
    async claim({ id, poll_token: bearer }: CreatedSession, code: string): Promise<void> {
      await post(`/sessions/${id}/claim`, { bearer, body: { code }, schema: anyData })
    },
    async acknowledge(
      { id, poll_token: bearer }: CreatedSession,
      ack_token: string,
    ): Promise<void> {
      await post(`/sessions/${id}/ack`, { bearer, body: { ack_token }, schema: anyData })
    },
    createLogin: (serviceId: string, bearer: string) =>
      post('/login-sessions', { bearer, body: { service_id: serviceId }, schema: loginSchema }),
  }
}

/** Returns the delay before a retry, in milliseconds; undefined if the error is permanent. */
export function retryAfterMs(error: unknown, defaultMs: number): number | undefined {
  if (error instanceof NoValidResponse) return defaultMs
  if (!(error instanceof ApiError) || !(error.retryable || error.status >= 500)) return undefined
  const seconds = Number(error.headers['retry-after'])
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : defaultMs
}

const retryDelayMs = 1000

/** Sends an idempotent request up to three times. Throws the last error. */
export async function withRetries<T>(request: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await request()
    } catch (error) {
      const wait = retryAfterMs(error, retryDelayMs)
      if (wait === undefined || wait > 10 * retryDelayMs || attempt === 3) throw error
      await delay(wait)
    }
  }
}
