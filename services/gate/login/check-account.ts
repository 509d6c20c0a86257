import { ApiError } from '../../../infra/errors/errors.ts'
import type { AgentTokenRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { usableToken } from '../accounts/agent-token.ts'

export interface AccountState {
  /** Whose service it is. */
  owner: OrganizationRow | undefined
  /** Of the account that would be logged in. */
  token: AgentTokenRow | undefined
}

/**
 * That a code for the account could be used, before a person is sent to the dashboard with one. ApiError: 404
 * request.not_found while the owner is not active, as when a login is created, so that no more of it is told than the
 * registry tells; 410 gate.session_expired when the agent token that asked for the login was revoked or has expired.
 */
export function checkAccount({ owner, token }: AccountState, now: number): void {
  if (owner?.status !== 'active')
    throw new ApiError('request.not_found', { message: 'The service takes no logins now.' })
  if (!usableToken(token, now)) {
    const message = 'The agent token that asked for this login does not work any more.'
    throw new ApiError('gate.session_expired', { message })
  }
}
