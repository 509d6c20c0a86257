import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { errorResponses, single, timestamp } from '../../../infra/http/schemas.ts'
import type { AgentTokenRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { noStore } from '../requests.ts'
import { revokeAgentToken, verifyAgentToken } from './commands.ts'

const tags = ['Gate']

interface Body {
  Body: z.output<typeof verifyBody>
}

type AccountContext = Pick<
  GateContext,
  'auth' | 'limits' | 'scopeOf' | 'pool' | 'keyring' | 'decideByKey' | 'clock' | 'logger' | 'readCurrent'
>

export function accountRoutes(app: FastifyInstance, context: AccountContext): void {
  verifyRoute(app, context)
  revokeRoute(app, context)
}

function verifyRoute(app: FastifyInstance, context: AccountContext): void {
  const { auth, limits, scopeOf, decideByKey } = context
  const schema = {
    operationId: 'verifyGateAgentToken',
    summary: 'Verify an agent token',
    description:
      "Requires the `gate:agent_tokens:verify` secret-key scope. Only `valid: false` for anything but a token of the key's organization and environment that is good now. A token is good for 90 days after its last use, and this is one. The answer is always the present one: an Idempotency-Key changes nothing.",
    tags,
    body: verifyBody,
    response: { 200: single(verificationSchema), ...errorResponses(400, 401, 403, 413, 415, 422, 429) },
  }
  const onRequest = [noStore, auth.requireSecret('gate:agent_tokens:verify')]
  const config = { parameterSet: 'gate_agent_token_verify', bodyCode: 'gate.validation_failed' } as const
  app.post<Body>('/v1/gate/agent-tokens/verify', { schema, onRequest, config }, async (request) => {
    const scope = scopeOf(request)
    const { agent_token } = request.body
    await limits.count('verify', scope.organizationId, agent_token)
    const deps = { ...context, decide: decideByKey(request) }
    const token = await context.readCurrent(() => verifyAgentToken(deps, { agentToken: agent_token, scope }))
    return { data: verificationJson(token), meta: { request_id: request.id } }
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

function revokeRoute(app: FastifyInstance, context: AccountContext): void {
  const { auth, limits, scopeOf, decideByKey } = context
  const schema = {
    operationId: 'revokeGateAgentToken',
    summary: 'Revoke an agent token for good',
    description:
      "Requires the `gate:agent_tokens:revoke` secret-key scope. Effective at once, for login codes that were not used yet, too. 404 unless the token is of the key's organization and environment; to revoke one again does nothing.",
    tags,
    body: revokeBody,
    response: {
      204: z.null().describe('It works no more.'),
      ...errorResponses(400, 401, 403, 404, 413, 415, 422, 429),
    },
  }
  const onRequest = [noStore, auth.requireSecret('gate:agent_tokens:revoke')]
  const config = { parameterSet: 'gate_agent_token_revoke', bodyCode: 'gate.validation_failed' } as const
  app.post<Body>('/v1/gate/agent-tokens/revoke', { schema, onRequest, config }, async (request, reply) => {
    const scope = scopeOf(request)
    const { agent_token } = request.body
    await limits.count('revoke', scope.organizationId, agent_token)
    const deps = { ...context, decide: decideByKey(request) }
    await revokeAgentToken(deps, { agentToken: agent_token, scope })
    return reply.code(204).send()
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
