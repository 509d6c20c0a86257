import { ApiError } from '../../../infra/errors/errors.ts'
import type { Decision } from '../../../infra/event-store/decide.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import type { AgentTokenRow, GateSessionRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { usableToken } from '../accounts/agent-token.ts'
import { openService, type RegisteredService } from '../registry/registered.ts'
import type { Requester } from '../requests/requester.ts'
import { sessionTtlMs } from '../session-state.ts'
import { sessionDecision } from '../signup/session-decision.ts'

export interface LoginOpeningState {
  token: AgentTokenRow | undefined
  service: RegisteredService | undefined
  /** Whose service it is. */
  organization: OrganizationRow | undefined
  /** What the command made before. */
  session: GateSessionRow | undefined
}

export interface OpenLogin {
  gateSessionId: GateSessionId
  requester: Requester
  /** Epoch milliseconds. */
  now: number
}

/**
 * A dashboard login that waits for consent; no event when it is there already: the command is repeated. ApiError: 401
 * unless the token is good and of this service, 404 unless the service is open and has a dashboard to log in to.
 */
export function openLogin({ session, ...state }: LoginOpeningState, command: OpenLogin): Decision[] {
  const token = goodToken(state.token, command.now)
  if (session) return []
  const service = serviceWithDashboard(state)
  // The registry is public, so it is no secret that the service exists; that it has this account is.
  if (token.service_id !== service.id) throw new ApiError('auth.invalid_api_key')
  return [opened(token, command)]
}

/** The token; 401 unless it is good. */
export function goodToken(token: AgentTokenRow | undefined, now: number): AgentTokenRow {
  const usable = usableToken(token, now)
  if (!usable) throw new ApiError('auth.invalid_api_key')
  return usable
}

function serviceWithDashboard({
  service,
  organization,
}: Pick<LoginOpeningState, 'service' | 'organization'>): RegisteredService {
  const open = openService(organization?.status === 'active' ? service : undefined)
  if (open.definition.dashboard_login_url !== null) return open
  throw new ApiError('request.not_found', { message: 'The service has no dashboard to log in to.' })
}

function opened(token: AgentTokenRow, { gateSessionId, requester, now }: OpenLogin): Decision {
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
  }
  const of = { id: gateSessionId, organization_id, environment }
  return sessionDecision(of, { event: { type: 'LoginSessionOpened', data }, now })
}
