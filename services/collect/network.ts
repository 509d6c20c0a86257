import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { ApiError } from '../../infra/errors/errors.ts'
import { errorResponses } from '../../infra/http/schemas.ts'
import { timeOrderedId } from '../../infra/ids.ts'
import { ipAddressOf, userAgentOf } from './client-facts.ts'
import type { CollectDeps } from './deps.ts'

export const pingPath = '/v2/collect/pings/:pingId'
export const networkCheckPath = '/v2/collect/network-checks'

const pingId = /^[A-Za-z0-9_-]{1,128}$/
const maxCheckBytes = 4096

/** The two endpoints that need no key: a ping for measuring the way to us, and what a client found out about it. */
export function networkRoutes(app: FastifyInstance, deps: CollectDeps): void {
  app.get<{ Params: { pingId: string } }>(
    pingPath,
    {
      schema: {
        operationId: 'pingCollect',
        tags: ['Collect'],
        summary: 'Measure the way to the server',
        params: z.object({ pingId: z.string().describe('1-128 characters of A-Z, a-z, 0-9, _ and -.') }),
        response: { 204: z.null(), ...errorResponses(404) },
      },
    },
    async ({ params }, reply) => {
      if (!pingId.test(params.pingId)) throw new ApiError('request.not_found')
      return reply.code(204).header('cache-control', 'no-store').send()
    },
  )
  app.post<{ Body: Record<string, unknown> }>(
    networkCheckPath,
    {
      bodyLimit: maxCheckBytes,
      schema: {
        operationId: 'reportNetworkCheck',
        tags: ['Collect'],
        summary: 'Report a network check',
        body: z.record(z.string(), z.unknown()).describe('At most 4 KiB.'),
        response: { 202: z.object({ ack: z.literal(true) }), ...errorResponses(400, 413, 415, 422) },
      },
    },
    async (request, reply) => {
      await deps.log.append([checkRecord(request, deps)])
      return reply.code(202).send({ ack: true })
    },
  )
}

function checkRecord(
  request: FastifyRequest<{ Body: Record<string, unknown> }>,
  { clock, random, codec }: CollectDeps,
) {
  const now = clock()
  const checkId = timeOrderedId('nck', now, random)
  const data = {
    check_id: checkId,
    received_at: now,
    ip_address: ipAddressOf(request),
    user_agent: userAgentOf(request),
    body: JSON.stringify(request.body),
  }
  const meta = { eventId: checkId, time: now, organizationId: null, environment: null }
  return codec.toRecord({ type: 'NetworkChecked', data }, meta)
}
