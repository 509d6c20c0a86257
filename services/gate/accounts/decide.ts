import { ApiError } from '../../../infra/errors/errors.ts'
import { type DecidedEvent, eventAbout } from '../../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { derivedId } from '../../../infra/ids.ts'
import type { AgentTokenRow } from '../../../projections/gate/tables.ts'
import type { Environment } from '../../../schemas/events.ts'
import { agentTokenTtlMs } from '../sessions.ts'

// Limits the renewals of a token to one event a day.
const renewEveryMs = 24 * 60 * 60 * 1000

/** Returns the token if it is active and has not expired; otherwise undefined. */
export function usableToken(
  token: AgentTokenRow | undefined,
  now: number,
): AgentTokenRow | undefined {
  return token?.status === 'active' && token.expires_at > now ? token : undefined
}

export interface TokenScope {
  organizationId: string
  environment: Environment
}

/** Returns the token if it belongs to the scope; otherwise undefined. */
export function tokenInScope(
  token: AgentTokenRow | undefined,
  { organizationId, environment }: TokenScope,
): AgentTokenRow | undefined {
  return token?.organization_id === organizationId && token.environment === environment
    ? token
    : undefined
}

export function isRenewalDue({ expires_at }: AgentTokenRow, now: number): boolean {
  return expires_at - now < agentTokenTtlMs - renewEveryMs
}

/** Renews the token for 90 days from now. Returns no event if it is unusable or was renewed within a day. */
export function decideRenewal(
  token: AgentTokenRow | undefined,
  { now }: { now: number },
): DecidedEvent[] {
  const usable = usableToken(token, now)
  if (!usable || !isRenewalDue(usable, now)) return []
  const expires_at = now + agentTokenTtlMs
  const { gate_session_id, gate_account_id } = usable
  const data = { gate_session_id, gate_account_id, expires_at, renewed_at: now }
  return [
    tokenEvent(usable, { type: 'AgentTokenRenewed', data }, { name: `renewed ${expires_at}`, now }),
  ]
}

/** Returns no event if the token is already revoked. Throws 404 unless it belongs to the scope. */
export function decideRevocation(
  token: AgentTokenRow | undefined,
  { now, ...scope }: TokenScope & { now: number },
): DecidedEvent[] {
  const revocable = tokenInScope(token, scope)
  if (!revocable) throw noSuchToken()
  if (revocable.status === 'revoked') return []
  const { gate_session_id, gate_account_id } = revocable
  const data = { gate_session_id, gate_account_id, revoked_at: now }
  return [tokenEvent(revocable, { type: 'AgentTokenRevoked', data }, { name: 'revoked', now })]
}

export function noSuchToken(): ApiError {
  return new ApiError('request.not_found', { message: 'There is no such agent token.' })
}

function tokenEvent(
  token: AgentTokenRow,
  event: DomainEvent,
  { name, now }: { name: string; now: number },
): DecidedEvent {
  return eventAbout(token, event, { eventId: derivedId('evt', token.gate_account_id, name), now })
}
