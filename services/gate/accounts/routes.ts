import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single, timestamp } from '../../../infra/http/schemas.ts'
import type { AgentTokenRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { gateRoute, noStore } from '../requests.ts'
import { revokeAgentToken, verifyAgentToken } from './commands.ts'

export function accountRoutes(app: FastifyInstance, context: GateContext): void {
  verifyRoute(app, context)
  revokeRoute(app, context)
}

function verifyRoute(app: FastifyInstance, context: GateContext): void {
  const { auth, limits, decideByKey, readCurrent } = context
  endpoint(app, {
    ...gateRoute,
    route: 'POST /v1/gate/agent-tokens/verify',
    auth: [noStore, auth.requireSecret('gate:agent_tokens:verify')],
    operationId: 'verifyGateAgentToken',
    summary: 'Verify an agent token',
    description:
      "Requires the `gate:agent_tokens:verify` secret-key scope. Only `valid: false` for anything but a token of the key's organization and environment that is good now. A token is good for 90 days after its last use, and this is one. The answer is always the present one: an Idempotency-Key changes nothing.",
    body: verifyBody,
    parameterSet: 'gate_agent_token_verify',
    answers: { 200: single(verificationSchema) },
    async run(request) {
      const scope = auth.scope(request)
      const { agent_token: agentToken } = request.body
      await limits.count('verify', scope.organizationId, agentToken)
      const deps = { ...context, decide: decideByKey(request) }
      const token = await readCurrent(() => verifyAgentToken(deps, agentToken, scope))
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
  const { auth, limits, decideByKey } = context
  endpoint(app, {
    ...gateRoute,
    route: 'POST /v1/gate/agent-tokens/revoke',
    auth: [noStore, auth.requireSecret('gate:agent_tokens:revoke')],
    operationId: 'revokeGateAgentToken',
    summary: 'Revoke an agent token for good',
    description:
      "Requires the `gate:agent_tokens:revoke` secret-key scope. Effective at once, for login codes that were not used yet, too. 404 unless the token is of the key's organization and environment; to revoke one again does nothing.",
    body: revokeBody,
    parameterSet: 'gate_agent_token_revoke',
    answers: { 204: z.null().describe('It works no more.') },
    errors: [404],
    async run(request, { reply }) {
      const scope = auth.scope(request)
      const { agent_token: agentToken } = request.body
      await limits.count('revoke', scope.organizationId, agentToken)
      await revokeAgentToken({ ...context, decide: decideByKey(request) }, agentToken, scope)
      return reply.code(204).send()
    },
  })
}

const agentTokenBody = z.strictObject({ agent_token: z.string().describe('agt_...') })
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
      expires_at: timestamp.describe('90 days after the last use, give or take a day.'),
    }),
  ])
  .meta({ id: 'AgentTokenVerification' })
