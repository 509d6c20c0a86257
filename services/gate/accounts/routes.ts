import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { isToken, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import { findAgentToken } from '../../../projections/gate/queries.ts'
import type { AgentTokenRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { noStore } from '../requests/no-store.ts'
import { sessionStream } from '../streams.ts'
import { noSuchToken, ownToken, revokeAgentToken, type TokenScope, usableToken } from './agent-token.ts'
import { revokeBody, verificationSchema, verifyBody } from './schemas.ts'
import { findToken, useToken } from './use-token.ts'

const tags = ['Gate']

interface Body {
  Body: z.output<typeof verifyBody>
}

type AccountContext = Pick<
  GateContext,
  'auth' | 'limits' | 'scopeOf' | 'pool' | 'keyring' | 'decide' | 'clock' | 'logger' | 'believed'
>

/** What a service does with the agent tokens of its accounts. */
export function accountRoutes(app: FastifyInstance, context: AccountContext): void {
  verifyRoute(app, context)
  revokeRoute(app, context)
}

function verifyRoute(app: FastifyInstance, context: AccountContext): void {
  const { auth, limits, scopeOf } = context
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
    await limits.take('verify', scope.organizationId, agent_token)
    const token = await context.believed(() => verified(context, { text: agent_token, scope }))
    return { data: verificationJson(token), meta: { request_id: request.id } }
  })
}

interface Named {
  /** Whatever was sent as the token. */
  text: string
  scope: TokenScope
}

async function verified(context: AccountContext, { text, scope }: Named): Promise<AgentTokenRow | undefined> {
  if (!isToken('agt', text)) return undefined
  const now = context.clock()
  const token = usableToken(ownToken(await findToken(context, text), scope), now)
  return token && useToken(context, { token, now })
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
  const { auth, limits, scopeOf } = context
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
    await limits.take('revoke', scope.organizationId, agent_token)
    await revoke(context, { text: agent_token, scope })
    return reply.code(204).send()
  })
}

async function revoke(context: AccountContext, { text, scope }: Named): Promise<void> {
  const { pool, keyring, decide, clock, believed } = context
  const hashes = isToken('agt', text) ? tokenHashes(keyring, text) : []
  // Which session issued a token never changes, so it may be read before the lock is held.
  const token = ownToken(await believed(() => findAgentToken(pool, hashes)), scope)
  if (!token) throw noSuchToken()
  const now = clock()
  await decide({
    ...sessionStream(token.gate_session_id),
    load: (tx) => findAgentToken(tx, hashes),
    decide: (state) => revokeAgentToken(state, { ...scope, now }),
  })
}
