import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import { asId } from '../../infra/ids.ts'
import type { AgentTokenRow, GateSessionRow } from './rows.ts'

const tokenEventTypes = ['GateSessionApproved', 'AgentTokenRenewed', 'AgentTokenRevoked'] as const
export type TokenEvent = Extract<RecordedEvent, { type: (typeof tokenEventTypes)[number] }>

export function isTokenEvent(event: RecordedEvent): event is TokenEvent {
  return tokenEventTypes.some((type) => type === event.type)
}

/** The agent token after the event; undefined where none was issued. `session` is the signup that issues it. */
export function evolveAgentToken(
  state: AgentTokenRow | undefined,
  event: TokenEvent,
  session: GateSessionRow | undefined,
): AgentTokenRow | undefined {
  if (event.type === 'GateSessionApproved') return state ?? issued(event, session)
  if (!state) return undefined
  switch (event.type) {
    case 'AgentTokenRenewed':
      return { ...state, expires_at: event.data.expires_at }
    case 'AgentTokenRevoked':
      return { ...state, status: 'revoked' }
    default:
      return event satisfies never
  }
}

function issued(
  { data }: Extract<TokenEvent, { type: 'GateSessionApproved' }>,
  session: GateSessionRow | undefined,
): AgentTokenRow | undefined {
  const { agent_token_hash: token_hash, agent_token_expires_at: expires_at } = data
  if (!session || token_hash === null || expires_at === null) return undefined
  const { id: gate_session_id, service_id, organization_id, environment, account_name } = session
  return {
    gate_account_id: asId('gacct', data.gate_account_id),
    gate_session_id,
    service_id,
    organization_id,
    environment,
    account_name,
    token_hash,
    status: 'active',
    created_at: data.approved_at,
    expires_at,
  }
}
