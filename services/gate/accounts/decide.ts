import { ApiError } from '../../../infra/errors/errors.ts'
import { type DecidedEvent, eventAbout } from '../../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { derivedId } from '../../../infra/ids.ts'
import type { AgentTokenRow } from '../../../projections/gate/tables.ts'
import type { Environment } from '../../../schemas/events.ts'
import { agentTokenTtlMs } from '../sessions.ts'

// A token in use costs one event a day at most.
const renewEveryMs = 24 * 60 * 60 * 1000

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

/** The token where it is of the scope. */
export function ownToken(
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

/** A use of the token. No event unless a day of its 90 has passed. */
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
    tokenDecision(
      usable,
      { type: 'AgentTokenRenewed', data },
      { name: `renewed ${expires_at}`, now },
    ),
  ]
}

/** 404 unless the token is of the scope. No event where it is revoked already. */
export function decideRevocation(
  token: AgentTokenRow | undefined,
  { now, ...scope }: TokenScope & { now: number },
): DecidedEvent[] {
  const own = ownToken(token, scope)
  if (!own) throw noSuchToken()
  if (own.status === 'revoked') return []
  const { gate_session_id, gate_account_id } = own
  const data = { gate_session_id, gate_account_id, revoked_at: now }
  return [tokenDecision(own, { type: 'AgentTokenRevoked', data }, { name: 'revoked', now })]
}

export function noSuchToken(): ApiError {
  return new ApiError('request.not_found', { message: 'There is no such agent token.' })
}

function tokenDecision(
  token: AgentTokenRow,
  event: DomainEvent,
  { name, now }: { name: string; now: number },
): DecidedEvent {
  return eventAbout(token, event, { eventId: derivedId('evt', token.gate_account_id, name), now })
}
