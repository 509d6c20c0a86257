import type { FastifyInstance, onRequestHookHandler } from 'fastify'
import { z } from 'zod'
import { createBudget, rateLimitError } from '../../infra/access/budget.ts'
import { sourceOf } from '../../infra/access/source.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import type { Clock } from '../../infra/ids.ts'

const pingPath = '/v2/collect/pings/:pingId'
const networkCheckPath = '/v2/collect/network-checks'

/** Paths that need preflights, by method. */
export const networkPaths = { get: [pingPath], post: [networkCheckPath] }

const pingIdPattern = /^[A-Za-z0-9_-]{1,128}$/
const maxCheckBytes = 4096

/** Adds the ping and the network check. Neither stores anything, because the server does not use the results. */
export function networkRoutes(app: FastifyInstance, { clock }: { clock: Clock }): void {
  const auth = createKeylessLimit(clock)
  endpoint(app, {
    route: `GET ${pingPath}`,
    auth,
    operationId: 'pingCollect',
    tag: 'Collect',
    summary: 'Ping the server',
    description: 'Needs no key. Measures the network path to the server; nothing is stored.',
    params: z.object({ pingId: z.string().meta({ pattern: pingIdPattern.source }) }),
    responses: { 204: z.null() },
    errors: [404, 429],
    run({ params }, { reply }) {
      if (!pingIdPattern.test(params.pingId)) throw new ApiError('request.not_found')
      return reply.code(204).header('cache-control', 'no-store').send()
    },
  })
  endpoint(app, {
    route: `POST ${networkCheckPath}`,
    auth,
    settings: { bodyLimit: maxCheckBytes },
    operationId: 'reportNetworkCheck',
    tag: 'Collect',
    summary: 'Report a network check',
    description: 'Needs no key. Accepts the report without storing it.',
    body: z
      .record(z.string(), z.unknown())
      .describe('Result of the check, at most 4 KiB. Not stored.'),
    responses: { 202: z.object({ ack: z.literal(true) }) },
    errors: [429],
    run: (_request, { reply }) => reply.code(202).send({ ack: true }),
  })
}

// Limits for requests without a key in this process, per source and for all sources together.
const keylessRates = { source: { perSecond: 10, burst: 50 }, all: { perSecond: 500, burst: 1000 } }

function createKeylessLimit(clock: Clock): onRequestHookHandler {
  const sourceBudget = createBudget({ clock, ...keylessRates.source })
  const totalBudget = createBudget({ clock, ...keylessRates.all })
  return ({ ip }, _reply, done) => {
    const isWithinLimits = sourceBudget.spend(sourceOf(ip)) && totalBudget.spend('all')
    done(isWithinLimits ? undefined : rateLimitError())
  }
}
