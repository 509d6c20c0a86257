import type { FastifyInstance, onRequestHookHandler } from 'fastify'
import { z } from 'zod'
import { createBudget, overBudget } from '../../infra/access/budget.ts'
import { sourceOf } from '../../infra/access/source.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import type { Clock } from '../../infra/ids.ts'

const pingPath = '/v2/collect/pings/:pingId'
const networkCheckPath = '/v2/collect/network-checks'

/** For their preflights. */
export const networkPaths = { get: [pingPath], post: [networkCheckPath] }

const pingId = /^[A-Za-z0-9_-]{1,128}$/
const maxCheckBytes = 4096

/** Both store nothing, because no part of the server reads what a client finds out about its network. */
export function networkRoutes(app: FastifyInstance, { clock }: { clock: Clock }): void {
  const auth = limitKeyless(clock)
  endpoint(app, {
    route: `GET ${pingPath}`,
    auth,
    operationId: 'pingCollect',
    tag: 'Collect',
    summary: 'Measure the way to the server',
    params: z.object({ pingId: z.string().meta({ pattern: pingId.source }) }),
    answers: { 204: z.null() },
    errors: [404, 429],
    run({ params }, { reply }) {
      if (!pingId.test(params.pingId)) throw new ApiError('request.not_found')
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
    body: z.record(z.string(), z.unknown()).describe('At most 4 KiB.'),
    answers: { 202: z.object({ ack: z.literal(true) }) },
    errors: [429],
    run: (_request, { reply }) => reply.code(202).send({ ack: true }),
  })
}

// Requests without a key that are answered, of each source and of all together, in this process.
const keyless = { source: { perSecond: 10, burst: 50 }, all: { perSecond: 500, burst: 1000 } }

function limitKeyless(clock: Clock): onRequestHookHandler {
  const ofSource = createBudget({ clock, ...keyless.source })
  const ofAll = createBudget({ clock, ...keyless.all })
  return ({ ip }, _reply, done) => {
    const isWithin = ofSource.spend(sourceOf(ip)) && ofAll.spend('all')
    done(isWithin ? undefined : overBudget())
  }
}
