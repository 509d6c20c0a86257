import { createHmac } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { constantTimeEqual } from '../../infra/crypto/constant-time.ts'
import { ApiError, invalidField } from '../../infra/errors/errors.ts'
import { openToken, UnreadableToken } from '../../infra/wire/sealed-token.ts'

export interface Demo {
  publishableKey: string
  baseUrl(): string
  openToken(token: string): unknown
  readSession(sessionId: string): Promise<unknown>
}

/** Creates the demo of an organization. Its back end uses a secret key, like a customer's. */
export function createDemo(options: {
  publishableKey: string
  secretKey: string
  baseUrl: () => string
}): Demo {
  const { publishableKey, secretKey, baseUrl } = options
  return {
    publishableKey,
    baseUrl,
    openToken: (token) => openToken(token, { secretKey }),
    async readSession(sessionId) {
      const headers = { authorization: `Bearer ${secretKey}` }
      const response = await fetch(`${baseUrl()}/v1/sessions/${sessionId}?include=score`, {
        headers,
      })
      if (response.ok) return response.json()
      if (response.status === 404) throw new ApiError('request.not_found')
      throw new ApiError('service.unavailable', { headers: { 'retry-after': '1' } })
    },
  }
}

const verifyBody = z.object({ sealedToken: z.string().min(1).max(100_000) })
const sessionParams = z.object({ sessionId: z.string().regex(/^sid_[0-9a-z]{26}$/) })
const sessionQuery = z.object({ proof: z.string().max(100).default('') })
const payload = z.object({ session_id: sessionParams.shape.sessionId })

/**
 * Adds the demo's back end. A page that sends a session's sealed token gets that session and a link to it, signed with
 * `linkKey` so that it cannot be changed to open another session.
 */
export function demoApiRoutes(app: FastifyInstance, demo: Demo, linkKey: Buffer): void {
  const proofOf = (sessionId: string) =>
    createHmac('sha256', linkKey).update(sessionId).digest('base64url')

  app.post(
    '/demo/api/verify',
    { schema: { hide: true, body: verifyBody } },
    async (request, reply) => {
      const { sealedToken } = verifyBody.parse(request.body)
      const verification = openSealedToken(demo, sealedToken)
      const { session_id } = payload.parse(verification)
      const session = await demo.readSession(session_id)
      const raw_url = `/demo/api/sessions/${session_id}?proof=${proofOf(session_id)}`
      return reply.header('cache-control', 'no-store').send({ verification, session, raw_url })
    },
  )

  const schema = { hide: true, params: sessionParams, querystring: sessionQuery }
  app.get('/demo/api/sessions/:sessionId', { schema }, async (request, reply) => {
    const { sessionId } = sessionParams.parse(request.params)
    const { proof } = sessionQuery.parse(request.query)
    if (!constantTimeEqual(proofOf(sessionId), proof)) throw new ApiError('request.not_found')
    reply.header('cache-control', 'no-store').type('application/json; charset=utf-8')
    return reply.send(JSON.stringify(await demo.readSession(sessionId), null, 2))
  })
}

function openSealedToken(demo: Demo, token: string): unknown {
  try {
    return demo.openToken(token)
  } catch (error) {
    if (!(error instanceof UnreadableToken)) throw error
    throw invalidField({ name: 'sealedToken', issue: 'unreadable' })
  }
}
