import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { invalidField } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { queryTime, single } from '../../../infra/http/schemas.ts'
import { countSignups } from '../../../projections/gate/signups.ts'
import type { GateManagement } from '../context.ts'
import { gateRoute } from '../requests.ts'
import { maxCountedSignups as max, signupCountsSchema } from './schemas.ts'

// Units. A request may read 100,000 signups.
const cost = 5
const defaultPeriodMs = 30 * 24 * 60 * 60 * 1000

export function countSignupsRoute(
  app: FastifyInstance,
  { pool, auth, clock }: GateManagement,
): void {
  endpoint(app, {
    ...gateRoute,
    route: 'GET /v1/gate/signup-counts',
    auth: auth.requireSecret('gate:services:read', cost),
    operationId: 'countGateSignups',
    summary: 'Count signups',
    description: `Requires the \`gate:services:read\` secret-key scope. Counts the signups that started in a period, by service and by their outcome so far. Includes services without signups and disabled ones. Costs ${cost} units.`,
    query: z.object({
      since: queryTime
        .optional()
        .describe('Earliest start, inclusive. Default: 30 days before `until`.'),
      until: queryTime.optional().describe('Latest start, exclusive. Default: now.'),
    }),
    responses: { 200: single(signupCountsSchema) },
    errors: [422],
    async run(request) {
      const until = request.query.until ?? clock() + 1
      const since = request.query.since ?? until - defaultPeriodMs
      if (since > until)
        throw invalidField({ name: 'since', issue: 'invalid', expected: 'a time before until' })
      const { services, earliest } = await countSignups(pool, auth.dataScope(request), {
        since,
        until,
        max,
      })
      const total = services.reduce((sum, { started }) => sum + started, 0)
      const complete = total < max
      return {
        data: {
          object: 'gate_signup_counts' as const,
          since: new Date(complete ? since : (earliest ?? since)).toISOString(),
          until: new Date(until).toISOString(),
          complete,
          services,
        },
      }
    },
  })
}
