import { ApiError } from '../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import type { AgentTokenRow, GateSessionRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { type TokenScope, usableToken } from '../accounts/decide.ts'
import { type RegisteredService, requireOpenService } from '../registry/registered.ts'
import type { Requester } from '../requests.ts'
import {
  approvalMembers,
  codeTtlMs,
  type Proof,
  pendingSession,
  sessionDecision,
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
 * No event when the command is repeated. ApiError: 401 unless the token is usable and of this service, 404 unless the
 * service is open and has a dashboard.
 */
export function decideLoginOpening(state: LoginOpeningState, command: OpenLogin): DecidedEvent[] {
  const { gateSessionId, requester, confirmationCode, now } = command
  const token = goodToken(state.token, now)
  if (state.session) return []
  const service = requireOpenService(
    state.organization?.status === 'active' ? state.service : undefined,
  )
  const { dashboard_login_url } = service.definition
  if (dashboard_login_url === null)
    throw new ApiError('request.not_found', {
      message: 'The service has no dashboard to log in to.',
    })
  // The registry is public, so it is no secret that the service exists, but it is that it has this account.
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
  return [sessionDecision(opened, { type: 'LoginSessionOpened', data }, { now })]
}

/** ApiError 401 unless the token is usable. */
export function goodToken(token: AgentTokenRow | undefined, now: number): AgentTokenRow {
  const usable = usableToken(token, now)
  if (!usable) throw new ApiError('auth.invalid_api_key')
  return usable
}

interface LoginApproval {
  /** Under all master keys, the current first. */
  approveTokenHashes: [string, ...string[]]
  proof: Proof
  codeHash: string
  now: number
}

/**
 * No event when this very token has approved and its code is unused. ApiError: 404 no such session, 410 it or its
 * code has expired, 409 it is resolved or its code was used.
 */
export function decideLoginApproval(
  session: GateSessionRow | undefined,
  command: LoginApproval,
): DecidedEvent[] {
  if (session && isRepetition(session, command)) return []
  const { codeHash, now } = command
  const pending = pendingSession(session, now)
  const code = { code_hash: codeHash, code_expires_at: now + codeTtlMs }
  const data = {
    gate_session_id: pending.id,
    ...code,
    ...approvalMembers(command),
    approved_at: now,
  }
  return [sessionDecision(pending, { type: 'LoginSessionApproved', data }, { now })]
}

function isRepetition(
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
 * Passes where a code for the account could be used. ApiError: 404 while the owner is not active, as when a login is
 * created; 410 when the agent token that requested the login was revoked or has expired.
 */
export function checkAccount(
  { owner, token }: { owner: OrganizationRow | undefined; token: AgentTokenRow | undefined },
  now: number,
): void {
  if (owner?.status !== 'active')
    throw new ApiError('request.not_found', { message: 'The service takes no logins now.' })
  if (!usableToken(token, now)) {
    const message = 'The agent token that asked for this login does not work any more.'
    throw new ApiError('gate.session_expired', { message })
  }
}

/**
 * No event when this very request has consumed the code. ApiError: 410 gate.session_already_resolved when another
 * has, else 410 gate.session_expired unless the code is of the scope and valid. A code whose agent token was revoked
 * counts as expired.
 */
export function decideCodeConsumption(
  { session, token }: Pick<LoginOpeningState, 'session' | 'token'>,
  command: TokenScope & { consumptionId: string; now: number },
): DecidedEvent[] {
  const { organizationId, environment, consumptionId, now } = command
  const isOwn = session?.organization_id === organizationId && session.environment === environment
  if (!isOwn) throw expiredCode()
  if (session.code === 'consumed') {
    if (session.code_consumption_id === consumptionId) return []
    const message = 'The login code was used before.'
    throw new ApiError('gate.session_already_resolved', { status: 410, message })
  }
  const isOpen = session.code === 'issued' && (session.code_expires_at ?? 0) > now
  if (!isOpen || token?.status !== 'active') throw expiredCode()
  const data = { gate_session_id: session.id, consumption_id: consumptionId, consumed_at: now }
  return [sessionDecision(session, { type: 'LoginCodeConsumed', data }, { now })]
}

export function expiredCode(): ApiError {
  return new ApiError('gate.session_expired', {
    message: 'The login code is unknown, or its time is over.',
  })
}
