import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { createCursors, loadPage, pageQuery, refuseOffset } from '../../../infra/http/pagination.ts'
import { list, pathId, single } from '../../../infra/http/schemas.ts'
import { isId } from '../../../infra/ids.ts'
import { findTokenOfAccount } from '../../../projections/gate/queries.ts'
import {
  type AgentAccount,
  findAgentAccount,
  listAgentAccounts,
} from '../../../projections/gate/signups.ts'
import { revokeAgentToken } from '../accounts/commands.ts'
import { noSuchToken } from '../accounts/decide.ts'
import type { GateManagement } from '../context.ts'
import { gateRoute } from '../requests.ts'
import { agentTokenTtlMs } from '../sessions.ts'
import { agentAccountSchema, type GateAgentAccount } from './schemas.ts'

const path = '/v1/gate/agent-accounts'

export function managedAccountRoutes(app: FastifyInstance, context: GateManagement): void {
  listRoute(app, context)
  revokeRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, auth, keyring, clock }: GateManagement): void {
  const cursors = createCursors({ keyring })
  endpoint(app, {
    ...gateRoute,
    route: `GET ${path}`,
    auth: auth.requireSecret('gate:services:read'),
    operationId: 'listGateAgentAccounts',
    summary: 'List agent accounts',
    description:
      "Requires the `gate:services:read` secret-key scope. Returns the accounts that the organization's services created for agents in the key's environment, newest first.",
    query: z.object(pageQuery),
    beforeValidation: refuseOffset,
    responses: { 200: list(agentAccountSchema) },
    errors: [422],
    async run(request) {
      const scope = auth.dataScope(request)
      const { limit, cursor } = request.query
      const { rows, pagination } = await loadPage({
        limit,
        cursor,
        cursors,
        query: { list: 'gate-agent-accounts', ...scope },
        load: (after) =>
          listAgentAccounts(pool, scope, {
            limit,
            after: after && { createdAt: after.value, id: after.id },
          }),
        positionOf: (row) => ({ value: row.created_at, id: row.id }),
      })
      return { data: rows.map((row) => agentAccountJson(row, clock())), pagination }
    },
  })
}

function revokeRoute(app: FastifyInstance, context: GateManagement): void {
  const { pool, auth, clock, decideAsCaller } = context
  endpoint(app, {
    ...gateRoute,
    route: `DELETE ${path}/:gateAccountId/token`,
    auth: auth.requireSecret('gate:agent_tokens:revoke'),
    operationId: 'revokeGateAgentAccountToken',
    summary: "Revoke an account's agent token",
    description:
      "Requires the `gate:agent_tokens:revoke` secret-key scope. Like `POST /v1/gate/agent-tokens/revoke`, but needs only the account's id: permanent, effective immediately and also for unused login codes. 404 unless the account belongs to the key's organization and environment and has a token. Revoking it again has no effect.",
    params: z.object({ gateAccountId: pathId('gacct') }),
    rejectBodyAs: 'gate_agent_token_revoke',
    responses: { 200: single(agentAccountSchema) },
    errors: [404],
    async run(request) {
      const { gateAccountId } = request.params
      if (!isId('gacct', gateAccountId)) throw noSuchToken()
      const scope = auth.dataScope(request)
      const deps = { ...context, decide: decideAsCaller(request) }
      await revokeAgentToken(deps, (db) => findTokenOfAccount(db, gateAccountId), scope)
      const account = await findAgentAccount(pool, scope, gateAccountId)
      if (!account) throw noSuchToken()
      return { data: agentAccountJson(account, clock()) }
    },
  })
}

function agentAccountJson(account: AgentAccount, now: number): GateAgentAccount {
  const { id, service_id, account_name, created_at } = account
  return {
    object: 'gate_agent_account',
    id,
    service_id,
    account_name: account_name || null,
    created_at: new Date(created_at).toISOString(),
    token: tokenJson(account, now),
  }
}

function tokenJson(
  { token_status, token_expires_at: expiresAt }: AgentAccount,
  now: number,
): GateAgentAccount['token'] {
  if (token_status === null || expiresAt === null) return null
  return {
    status: token_status === 'active' && expiresAt <= now ? 'expired' : token_status,
    last_used_at: new Date(expiresAt - agentTokenTtlMs).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
  }
}
