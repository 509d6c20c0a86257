import type { Decision } from '../../../infra/event-store/decide.ts'
import { decided } from '../../../infra/event-store/decided.ts'
import { derivedId } from '../../../infra/ids.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateSessionApproved } from '../../../schemas/events.ts'

/** A signup that a person approved and whose service has not answered yet. */
export type StartedSession = GateSessionRow &
  Record<'approval_started_at' | 'risk_score', number> &
  Record<'approve_token_hash' | 'verdict' | 'delivery_key_id' | 'delivery_public_key', string> & {
    gate_account_id: NonNullable<GateSessionRow['gate_account_id']>
  }

/** Whether only the approval can end the session. */
export function isStarted(session: GateSessionRow | undefined): session is StartedSession {
  return session?.kind === 'signup' && session.status === 'pending' && session.approval_started_at !== null
}

/** What an approval has made. */
export type Credentials = Omit<GateSessionApproved, 'gate_session_id' | 'gate_account_id'>

/** The signup with all that it delivers; nothing when another has ended it meanwhile. */
export function approveSignup(session: GateSessionRow | undefined, credentials: Credentials): Decision[] {
  if (!isStarted(session)) return []
  const { id: gate_session_id, gate_account_id } = session
  const data = { gate_session_id, gate_account_id, ...credentials }
  const about = { ...tenantOf(session), now: credentials.approved_at }
  const eventId = derivedId('evt', gate_session_id, 'approved')
  return [decided({ type: 'GateSessionApproved', data }, { ...about, eventId })]
}

export interface FailSignup {
  /** In words for whoever signed up; quotes nothing of what the service answered. */
  problem: string
  /** Epoch milliseconds. */
  now: number
}

/** The approval came to nothing because of the service; nothing when another has ended it meanwhile. */
export function failSignup(session: GateSessionRow | undefined, { problem, now }: FailSignup): Decision[] {
  if (!isStarted(session)) return []
  const reason = 'integrator_failed' as const
  const data = { gate_session_id: session.id, reason, problem, rejected_at: now }
  const eventId = derivedId('evt', session.id, 'rejected', reason)
  return [decided({ type: 'GateSessionRejected', data }, { ...tenantOf(session), eventId, now })]
}

const tenantOf = ({ organization_id: organizationId, environment }: GateSessionRow) => ({
  organizationId,
  environment,
})
