import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single, timestamp } from '../../../infra/http/schemas.ts'
import type { AgentTokenRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { gateRoute, noStore } from '../requests.ts'
import { revokeAgentToken, tokenFinder, verifyAgentToken } from './commands.ts'

export function accountRoutes(app: FastifyInstance, context: GateContext): void {
  verifyRoute(app, context)
  revokeRoute(app, context)
}

function verifyRoute(app: FastifyInstance, context: GateContext): void {
  const { auth, limits, decideAsCaller, readFresh } = context
  endpoint(app, {
    ...gateRoute,
    route: 'POST /v1/gate/agent-tokens/verify',
    auth: [noStore, auth.requireSecret('gate:agent_tokens:verify')],
    operationId: 'verifyGateAgentToken',
    summary: 'Verify an agent token',
    description:
      "Requires the `gate:agent_tokens:verify` secret-key scope. Returns only `valid: false` unless the token is valid and belongs to the key's organization and environment. Verifying counts as a use, and a token expires 90 days after its last use. The result is always current: an Idempotency-Key has no effect. 60 requests per minute and token.",
    body: verifyBody,
    parameterSet: 'gate_agent_token_verify',
    responses: { 200: single(verificationSchema) },
    async run(request) {
      const scope = auth.dataScope(request)
      const { agent_token: agentToken } = request.body
      await limits.enforce('verify', scope.organizationId, agentToken)
      const deps = { ...context, decide: decideAsCaller(request) }
      const token = await readFresh(() => verifyAgentToken(deps, agentToken, scope))
      return { data: verificationJson(token) }
    },
  })
}

function verificationJson(token: AgentTokenRow | undefined): z.input<typeof verificationSchema> {
  if (!token) return { valid: false }
  return {
    valid: true,
    gate_account_id: token.gate_account_id,
    status: 'active',
    created_at: new Date(token.created_at).toISOString(),
    expires_at: new Date(token.expires_at).toISOString(),
  }
}

function revokeRoute(app: FastifyInstance, context: GateContext): void {
  const { auth, limits, decideAsCaller } = context
  endpoint(app, {
    ...gateRoute,
    route: 'POST /v1/gate/agent-tokens/revoke',
    auth: [noStore, auth.requireSecret('gate:agent_tokens:revoke')],
    operationId: 'revokeGateAgentToken',
    summary: 'Revoke an agent token',
    description:
      "Requires the `gate:agent_tokens:revoke` secret-key scope. Takes effect immediately, permanently, and also for unused login codes. 404 unless the token belongs to the key's organization and environment. Revoking it again has no effect. 20 requests per minute and token.",
    body: revokeBody,
    parameterSet: 'gate_agent_token_revoke',
    responses: { 204: z.null().describe('Revoked.') },
    errors: [404],
    async run(request, { reply }) {
      const scope = auth.dataScope(request)
      const { agent_token: agentToken } = request.body
      await limits.enforce('revoke', scope.organizationId, agentToken)
      const deps = { ...context, decide: decideAsCaller(request) }
      await revokeAgentToken(deps, tokenFinder(context, agentToken), scope)
      return reply.code(204).send()
    },
  })
}

const agentTokenBody = z.strictObject({
  agent_token: z.string().describe('Agent token, `agt_...`.'),
})
const verifyBody = agentTokenBody.meta({ id: 'VerifyAgentTokenRequest' })
const revokeBody = agentTokenBody.meta({ id: 'RevokeAgentTokenRequest' })

const verificationSchema = z
  .union([
    z.strictObject({ valid: z.literal(false) }),
    z.strictObject({
      valid: z.literal(true),
      gate_account_id: z.string(),
      status: z.literal('active'),
      created_at: timestamp,
      expires_at: timestamp.describe('About 90 days after the last use, accurate to a day.'),
    }),
  ])
  .meta({ id: 'AgentTokenVerification' })
