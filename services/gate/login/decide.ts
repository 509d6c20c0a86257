import { ApiError } from '../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import type { AgentTokenRow, GateSessionRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { type TokenScope, usableToken } from '../accounts/decide.ts'
import { type RegisteredService, requireOpenService } from '../registry/registered-services.ts'
import type { Requester } from '../requests.ts'
import {
  approvalMembers,
  codeTtlMs,
  type Proof,
  requirePending,
  sessionEvent,
  sessionTtlMs,
} from '../sessions.ts'

export interface LoginOpeningState {
  token: AgentTokenRow | undefined
  service: RegisteredService | undefined
  organization: OrganizationRow | undefined
  session: GateSessionRow | undefined
}

interface OpenLogin {
  gateSessionId: GateSessionId
  requester: Requester
  confirmationCode: string
  now: number
}

/**
 * Returns no event for a repeated command. Throws 401 unless the token is usable and was issued for this service, and
 * 404 unless the service is open and has a dashboard.
 */
export function decideLoginOpening(state: LoginOpeningState, command: OpenLogin): DecidedEvent[] {
  const { gateSessionId, requester, confirmationCode, now } = command
  const token = requireUsableToken(state.token, now)
  if (state.session) return []
  const service = requireOpenService(
    state.organization?.status === 'active' ? state.service : undefined,
  )
  const { dashboard_login_url } = service.definition
  if (dashboard_login_url === null)
    throw new ApiError('request.not_found', {
      message: 'The service has no dashboard to log in to.',
    })
  // Not 404, because the service exists in the public registry.
  if (token.service_id !== service.id) throw new ApiError('auth.invalid_api_key')
  const { service_id, organization_id, environment, gate_account_id, account_name } = token
  const data = {
    gate_session_id: gateSessionId,
    service_id,
    organization_id,
    environment,
    gate_account_id,
    account_name,
    ...requester,
    opened_at: now,
    expires_at: now + sessionTtlMs,
    confirmation_code: confirmationCode,
    dashboard_login_url,
  }
  const opened = { id: gateSessionId, organization_id, environment }
  return [sessionEvent(opened, { type: 'LoginSessionOpened', data }, { now })]
}

export function requireUsableToken(token: AgentTokenRow | undefined, now: number): AgentTokenRow {
  const usable = usableToken(token, now)
  if (!usable) throw new ApiError('auth.invalid_api_key')
  return usable
}

interface LoginApproval {
  /** Hashes under all master keys, current first. */
  approveTokenHashes: [string, ...string[]]
  proof: Proof
  codeHash: string
  now: number
}

/**
 * Returns no event if the same approve token approved before and the code is still unused. Throws 404 if there is no
 * session, 410 if it or its code has expired, and 409 if it is resolved or its code was used.
 */
export function decideLoginApproval(
  session: GateSessionRow | undefined,
  command: LoginApproval,
): DecidedEvent[] {
  if (session && isRepeatedApproval(session, command)) return []
  const { codeHash, now } = command
  const pending = requirePending(session, now)
  const code = { code_hash: codeHash, code_expires_at: now + codeTtlMs }
  const data = {
    gate_session_id: pending.id,
    ...code,
    ...approvalMembers(command),
    approved_at: now,
  }
  return [sessionEvent(pending, { type: 'LoginSessionApproved', data }, { now })]
}

function isRepeatedApproval(
  session: GateSessionRow,
  { approveTokenHashes, now }: LoginApproval,
): boolean {
  const { status, approve_token_hash, code, code_expires_at } = session
  if (status !== 'approved' || approve_token_hash === null) return false
  if (!approveTokenHashes.includes(approve_token_hash) || code === 'consumed') return false
  if (code === 'issued' && (code_expires_at ?? 0) > now) return true
  throw new ApiError('gate.session_expired')
}

/**
 * Throws 404 if the service's organization is not active, and 410 if the agent token that requested the login was
 * revoked or has expired, because a login code would be useless then.
 */
export function requireUsableAccount(
  { owner, token }: { owner: OrganizationRow | undefined; token: AgentTokenRow | undefined },
  now: number,
): void {
  if (owner?.status !== 'active')
    throw new ApiError('request.not_found', { message: 'The service does not accept logins now.' })
  if (!usableToken(token, now)) {
    const message = 'The agent token that requested this login no longer works.'
    throw new ApiError('gate.session_expired', { message })
  }
}

/**
 * Returns no event if the same request consumed the code before. Throws 410 `gate.session_already_resolved` if another
 * request did, and 410 `gate.session_expired` if the code has expired, belongs to another scope, or its agent token was
 * revoked.
 */
export function decideCodeConsumption(
  { session, token }: Pick<LoginOpeningState, 'session' | 'token'>,
  command: TokenScope & { consumptionId: string; now: number },
): DecidedEvent[] {
  const { organizationId, environment, consumptionId, now } = command
  const isInScope =
    session?.organization_id === organizationId && session.environment === environment
  if (!isInScope) throw expiredCodeError()
  if (session.code === 'consumed') {
    if (session.code_consumption_id === consumptionId) return []
    const message = 'The login code was used before.'
    throw new ApiError('gate.session_already_resolved', { status: 410, message })
  }
  const isOpen = session.code === 'issued' && (session.code_expires_at ?? 0) > now
  if (!isOpen || token?.status !== 'active') throw expiredCodeError()
  const data = { gate_session_id: session.id, consumption_id: consumptionId, consumed_at: now }
  return [sessionEvent(session, { type: 'LoginCodeConsumed', data }, { now })]
}

export function expiredCodeError(): ApiError {
  return new ApiError('gate.session_expired', {
    message: 'The login code is unknown or expired.',
  })
}
