import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { asId } from '../../infra/ids.ts'
import type {
  GateServiceDefinition,
  GateSessionApprovalStarted,
  GateSessionApproved,
  GateSessionClaimRequested,
  GateSessionOpened,
  LoginSessionApproved,
  LoginSessionOpened,
} from '../../schemas/events.ts'
import type { AgentTokenRow, GateServiceRow, GateSessionRow } from './tables.ts'

export type ServiceEvent = Extract<RecordedEvent, { type: `GateService${string}` }>

export function isServiceEvent(event: RecordedEvent): event is ServiceEvent {
  return event.type.startsWith('GateService')
}

export function evolveService(
  state: GateServiceRow | undefined,
  event: ServiceEvent,
): GateServiceRow | undefined {
  if (event.type === 'GateServiceRegistered') return state ?? newService(event)
  if (!state) return undefined
  switch (event.type) {
    case 'GateServiceChanged': {
      const { definition, changed_at: updated_at } = event.data
      const verified = state.verified && isSameIdentity(state.definition, definition)
      const isSameWebsite = state.definition.website === definition.website
      const verified_domain = isSameWebsite ? state.verified_domain : null
      return { ...state, definition, verified, verified_domain, updated_at }
    }
    case 'GateServiceVerified':
      return { ...state, verified: true, updated_at: event.data.verified_at }
    case 'GateServiceVerificationWithdrawn':
      return {
        ...state,
        verified: false,
        verified_domain: null,
        updated_at: event.data.withdrawn_at,
      }
    case 'GateServiceDomainVerified': {
      const { domain: verified_domain, verified_at: updated_at } = event.data
      return { ...state, verified_domain, updated_at }
    }
    case 'GateServiceDisabled':
      return { ...state, status: 'disabled', updated_at: event.data.disabled_at }
    default:
      return event satisfies never
  }
}

/** Returns true if nothing changed that the operator has verified: name, website, dashboard and logo. */
export function isSameIdentity(
  before: GateServiceDefinition,
  after: GateServiceDefinition,
): boolean {
  return (
    before.name === after.name &&
    before.website === after.website &&
    before.dashboard_login_url === after.dashboard_login_url &&
    before.branding.logo_url === after.branding.logo_url
  )
}

function newService({
  data,
}: Extract<ServiceEvent, { type: 'GateServiceRegistered' }>): GateServiceRow {
  const { service_id: id, organization_id, environment, definition, registered_at: at } = data
  const initial = { status: 'active', verified: false, verified_domain: null, definition } as const
  return { id, organization_id, environment, ...initial, created_at: at, updated_at: at }
}

export type GateSessionEvent = Extract<
  RecordedEvent,
  { type: `Gate${'Session' | 'Delivery' | 'Variables'}${string}` | `Login${string}` }
>

export function isGateSessionEvent(event: RecordedEvent): event is GateSessionEvent {
  return /^(Gate(Session|Delivery|Variables)|Login)/.test(event.type)
}

export function evolveSession(
  state: GateSessionRow | undefined,
  event: GateSessionEvent,
): GateSessionRow | undefined {
  if (event.type === 'GateSessionOpened') return state ?? newSignup(event.data)
  if (event.type === 'LoginSessionOpened') return state ?? newLogin(event.data)
  if (!state) return undefined
  switch (event.type) {
    case 'GateSessionApprovalStarted': {
      const { webhook_endpoint_id, started_at } = event.data
      return {
        ...state,
        ...approvalColumns(event.data),
        webhook_endpoint_id,
        approval_started_at: started_at,
      }
    }
    case 'GateSessionClaimRequested': {
      const { claim_code_hash } = event.data
      return { ...state, ...approvalColumns(event.data), claim: 'waiting', claim_code_hash }
    }
    case 'GateSessionClaimFailed':
      return { ...state, claim_failures: state.claim_failures + 1 }
    case 'GateSessionClaimed': {
      const { webhook_endpoint_id, claimed_at } = event.data
      return { ...state, claim: 'claimed', webhook_endpoint_id, approval_started_at: claimed_at }
    }
    case 'GateVariablesAccepted':
      return { ...state, accepted_env_vars: event.data.env_vars }
    case 'GateSessionApproved': {
      const { delivery_sealed, delivery_expires_at, ack_token_hash, approved_at } = event.data
      const delivery = {
        delivery_sealed,
        delivery_expires_at,
        ack_token_hash,
        delivery: 'waiting',
      } as const
      return { ...state, ...delivery, status: 'approved', resolved_at: approved_at }
    }
    case 'GateSessionRejected': {
      const { reason: rejection, problem, rejected_at } = event.data
      return { ...state, status: 'rejected', rejection, problem, resolved_at: rejected_at }
    }
    case 'GateSessionExpired':
      return { ...state, status: 'expired', resolved_at: event.data.expired_at }
    case 'GateDeliveryAcknowledged': {
      const { acknowledgement_id: delivery_acknowledgement_id } = event.data
      return {
        ...state,
        delivery: 'acknowledged',
        delivery_sealed: null,
        delivery_acknowledgement_id,
      }
    }
    case 'GateDeliveryExpired':
      return { ...state, delivery: 'expired', delivery_sealed: null }
    case 'LoginSessionApproved': {
      const { code_hash, code_expires_at, approved_at } = event.data
      const issued = { code: 'issued', code_hash, code_expires_at, status: 'approved' } as const
      return { ...state, ...proofColumns(event.data), ...issued, resolved_at: approved_at }
    }
    case 'LoginCodeConsumed':
      return { ...state, code: 'consumed', code_consumption_id: event.data.consumption_id }
    case 'LoginCodeExpired':
      return { ...state, code: 'expired' }
    default:
      return event satisfies never
  }
}

/**
 * Returns the session without personal data and no longer pending. Also clears columns that other events write, so that
 * an erasure has the same result whatever the order of events.
 */
export function erasedSession(session: GateSessionRow): GateSessionRow {
  const { status, delivery, code } = session
  return {
    ...session,
    is_erased: true,
    account_name: '',
    metadata: null,
    requested_ip: null,
    requested_user_agent: null,
    status: status === 'pending' ? 'expired' : status,
    delivery: delivery === 'waiting' ? 'expired' : delivery,
    delivery_sealed: null,
    ack_token_hash: null,
    code: code === 'issued' ? 'expired' : code,
    code_hash: null,
    claim_code_hash: null,
  }
}

function approvalColumns(data: GateSessionClaimRequested | GateSessionApprovalStarted) {
  return { ...proofColumns(data), gate_account_id: asId('gacct', data.gate_account_id) }
}

type Approval = GateSessionClaimRequested | GateSessionApprovalStarted | LoginSessionApproved

function proofColumns({ approve_token_hash, verdict, risk_score, proof_session_id }: Approval) {
  return { approve_token_hash, verdict, risk_score, proof_session_id }
}

const initialColumns = {
  is_erased: false,
  status: 'pending',
  resolved_at: null,
  rejection: null,
  problem: null,
  webhook_endpoint_id: null,
  approval_started_at: null,
  approve_token_hash: null,
  verdict: null,
  risk_score: null,
  proof_session_id: null,
  claim_code_hash: null,
  claim_failures: 0,
  accepted_env_vars: null,
  delivery: null,
  delivery_sealed: null,
  delivery_expires_at: null,
  ack_token_hash: null,
  delivery_acknowledgement_id: null,
  code: null,
  code_hash: null,
  code_expires_at: null,
  code_consumption_id: null,
} as const

function newSignup({ gate_session_id, ...data }: GateSessionOpened): GateSessionRow {
  return {
    ...initialColumns,
    ...data,
    id: asId('gate', gate_session_id),
    kind: 'signup',
    gate_account_id: null,
    dashboard_login_url: null,
    claim: data.claim === 'supported' ? 'supported' : null,
  }
}

function newLogin(opened: LoginSessionOpened): GateSessionRow {
  const { gate_session_id, gate_account_id, ...data } = opened
  return {
    ...initialColumns,
    ...data,
    id: asId('gate', gate_session_id),
    kind: 'login',
    gate_account_id: asId('gacct', gate_account_id),
    metadata: null,
    claim: null,
    delivery_key_id: null,
    delivery_public_key: null,
    poll_token_hash: null,
  }
}

export type TokenEvent = Extract<
  RecordedEvent,
  { type: 'GateSessionApproved' | `AgentToken${string}` }
>

export function isTokenEvent(event: RecordedEvent): event is TokenEvent {
  return /^(GateSessionApproved|AgentToken.*)$/.test(event.type)
}

/** Returns undefined until an approval issues the token. `session` is the signup that the token belongs to. */
export function evolveAgentToken(
  state: AgentTokenRow | undefined,
  event: TokenEvent,
  session: GateSessionRow | undefined,
): AgentTokenRow | undefined {
  switch (event.type) {
    case 'GateSessionApproved':
      return state ?? newToken(event.data, session)
    case 'AgentTokenRenewed':
      return state && { ...state, expires_at: event.data.expires_at }
    case 'AgentTokenRevoked':
      return state && { ...state, status: 'revoked' }
    default:
      return event satisfies never
  }
}

function newToken(
  data: GateSessionApproved,
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
