import type { Decision } from '../../../infra/event-store/decide.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { GateSessionOpened } from '../../../schemas/events.ts'
import { openService, type RegisteredService } from '../registry/registered.ts'
import { sessionTtlMs } from '../session-state.ts'
import { sessionDecision } from './session-decision.ts'

/** A request for a signup, checked and normalised. */
export type SessionSpec = Pick<
  GateSessionOpened,
  | 'account_name'
  | 'metadata'
  | 'delivery_key_id'
  | 'delivery_public_key'
  | 'requested_ip'
  | 'requested_user_agent'
>

export interface OpenSession {
  gateSessionId: GateSessionId
  spec: SessionSpec
  /** The poll token as it is stored. */
  pollTokenHash: string
  /** Epoch milliseconds. */
  now: number
}

export interface OpeningState {
  service: RegisteredService | undefined
  /** Whose service it is; undefined for the built-in one. */
  organization: OrganizationRow | undefined
  session: GateSessionRow | undefined
}

/**
 * A signup that waits for consent. 404 unless the service takes signups and its organization is active. No event when
 * the session is there already: the command is repeated.
 */
export function openSession({ session, ...state }: OpeningState, command: OpenSession): Decision[] {
  if (session) return []
  const { id: service_id, organization_id, environment } = serviceTaking(state)
  const { gateSessionId, spec, pollTokenHash, now } = command
  const data: GateSessionOpened = {
    gate_session_id: gateSessionId,
    service_id,
    organization_id,
    environment,
    ...spec,
    poll_token_hash: pollTokenHash,
    opened_at: now,
    expires_at: now + sessionTtlMs,
  }
  const opened = { id: gateSessionId, organization_id, environment }
  return [sessionDecision(opened, { event: { type: 'GateSessionOpened', data }, now })]
}

function serviceTaking({ service, organization }: Omit<OpeningState, 'session'>): RegisteredService {
  const isOwnerActive = service?.organization_id === null || organization?.status === 'active'
  return openService(isOwnerActive ? service : undefined)
}
