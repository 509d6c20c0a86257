import type { DomainEvent, RecordedEvent } from '../../../infra/event-store/event.ts'
import { gateProjection } from '../../../projections/gate/projection.ts'
import { systemService } from '../../../services/gate/registry/registered.ts'
import { type ReadModel, useReadModel } from '../read-model.ts'

export const topic = 'tidegate.gate.v1'
export const minute = 60_000
export const day = 24 * 60 * minute
/** A time to count from; what it is does not matter. */
export const start = 1_760_000_000_000
const id = <P extends string>(prefix: P, n: number) =>
  `${prefix}_${String(n).padStart(26, '0')}` as const
export const gate = (n: number) => id('gate', n)
export const gacct = (n: number) => id('gacct', n)
const organization_id = id('org', 1)
const environment = 'live'
const tenant = { organization_id, environment } as const
const { definition } = systemService('https://acme.example')
const proof = {
  verdict: 'human',
  risk_score: 12,
  proof_session_id: id('sid', 1),
  proof_decision_id: id('evt', 1),
}

/** Events about the service, signup or login number `n`, at a time that tells one from the next. */
export const events = {
  registered: (n: number, at: number): DomainEvent => ({
    type: 'GateServiceRegistered',
    data: { service_id: `service-${n}`, ...tenant, definition, registered_at: at },
  }),
  changed: (n: number, at: number): DomainEvent => ({
    type: 'GateServiceChanged',
    data: {
      service_id: `service-${n}`,
      ...tenant,
      definition: { ...definition, name: `${at}\u0000` },
      changed_at: at,
    },
  }),
  verified: (n: number, at: number): DomainEvent => ({
    type: 'GateServiceVerified',
    data: { service_id: `service-${n}`, ...tenant, verified_at: at },
  }),
  withdrawn: (n: number, at: number): DomainEvent => ({
    type: 'GateServiceVerificationWithdrawn',
    data: { service_id: `service-${n}`, ...tenant, withdrawn_at: at },
  }),
  disabled: (n: number, at: number): DomainEvent => ({
    type: 'GateServiceDisabled',
    data: { service_id: `service-${n}`, ...tenant, disabled_at: at },
  }),
  opened: (n: number, at: number): DomainEvent => ({
    type: 'GateSessionOpened',
    data: {
      ...session(n, at),
      metadata: '{"a":"\\u0000"}',
      delivery_key_id: 'key',
      delivery_public_key: 'public',
      poll_token_hash: `poll ${at}`,
      claim: at % 2 === 0 ? 'supported' : null,
    },
  }),
  loginOpened: (n: number, at: number): DomainEvent => ({
    type: 'LoginSessionOpened',
    data: {
      ...session(n, at),
      gate_account_id: gacct(n),
      dashboard_login_url: `https://acme.example/${at}\u0000`,
    },
  }),
  started: (n: number, at: number): DomainEvent => ({
    type: 'GateSessionApprovalStarted',
    data: {
      gate_session_id: gate(n),
      gate_account_id: gacct(n),
      webhook_endpoint_id: null,
      approve_token_hash: `approve ${at}`,
      ...proof,
      started_at: at,
    },
  }),
  claimRequested: (n: number, at: number): DomainEvent => ({
    type: 'GateSessionClaimRequested',
    data: {
      gate_session_id: gate(n),
      gate_account_id: gacct(n),
      approve_token_hash: `approve ${at}`,
      claim_code_hash: `claim ${at}`,
      ...proof,
      requested_at: at,
    },
  }),
  claimFailed: (n: number, at: number): DomainEvent => ({
    type: 'GateSessionClaimFailed',
    data: { gate_session_id: gate(n), gate_account_id: gacct(n), failed_at: at },
  }),
  claimed: (n: number, at: number): DomainEvent => ({
    type: 'GateSessionClaimed',
    data: {
      gate_session_id: gate(n),
      gate_account_id: gacct(n),
      webhook_endpoint_id: null,
      claimed_at: at,
    },
  }),
  domainVerified: (n: number, at: number): DomainEvent => ({
    type: 'GateServiceDomainVerified',
    data: {
      service_id: `service-${n}`,
      ...tenant,
      domain: `d${at}.example`,
      proof: 'dns',
      verified_at: at,
    },
  }),
  accepted: (n: number, at: number): DomainEvent => ({
    type: 'GateVariablesAccepted',
    data: {
      gate_session_id: gate(n),
      gate_account_id: gacct(n),
      env_vars: [`KEY_${at}`],
      accepted_at: at,
    },
  }),
  approved: (n: number, at: number): DomainEvent => ({
    type: 'GateSessionApproved',
    data: {
      gate_session_id: gate(n),
      gate_account_id: gacct(n),
      delivery_sealed: Buffer.from([0, 255, n]),
      delivery_expires_at: at + day,
      ack_token_hash: `ack ${at}`,
      agent_token_hash: n % 3 === 0 ? null : `agent ${n}`,
      agent_token_expires_at: n % 3 === 0 ? null : at + 90 * day,
      approved_at: at,
    },
  }),
  rejected: (n: number, at: number): DomainEvent => ({
    type: 'GateSessionRejected',
    data: {
      gate_session_id: gate(n),
      reason: 'integrator_failed',
      problem: `At ${at}\u0000.`,
      rejected_at: at,
    },
  }),
  expired: (n: number, at: number): DomainEvent => ({
    type: 'GateSessionExpired',
    data: { gate_session_id: gate(n), expired_at: at },
  }),
  acknowledged: (n: number, at: number): DomainEvent => ({
    type: 'GateDeliveryAcknowledged',
    data: { gate_session_id: gate(n), acknowledgement_id: `ack ${at}`, acknowledged_at: at },
  }),
  deliveryExpired: (n: number, at: number): DomainEvent => ({
    type: 'GateDeliveryExpired',
    data: { gate_session_id: gate(n), expired_at: at },
  }),
  loginApproved: (n: number, at: number): DomainEvent => ({
    type: 'LoginSessionApproved',
    data: {
      gate_session_id: gate(n),
      code_hash: `code ${at}`,
      code_expires_at: at + 5 * minute,
      approve_token_hash: `approve ${at}`,
      ...proof,
      approved_at: at,
    },
  }),
  codeConsumed: (n: number, at: number): DomainEvent => ({
    type: 'LoginCodeConsumed',
    data: { gate_session_id: gate(n), consumption_id: `use ${at}`, consumed_at: at },
  }),
  codeExpired: (n: number, at: number): DomainEvent => ({
    type: 'LoginCodeExpired',
    data: { gate_session_id: gate(n), expired_at: at },
  }),
  renewed: (n: number, at: number): DomainEvent => ({
    type: 'AgentTokenRenewed',
    data: {
      gate_session_id: gate(n),
      gate_account_id: gacct(n),
      expires_at: at + 90 * day,
      renewed_at: at,
    },
  }),
  revoked: (n: number, at: number): DomainEvent => ({
    type: 'AgentTokenRevoked',
    data: { gate_session_id: gate(n), gate_account_id: gacct(n), revoked_at: at },
  }),
} satisfies Record<string, (n: number, at: number) => DomainEvent>

function session(n: number, at: number) {
  return {
    gate_session_id: gate(n),
    service_id: `service-${n}`,
    ...tenant,
    account_name: `Robin ${n}`,
    requested_ip: '203.0.113.9',
    requested_user_agent: 'agent',
    confirmation_code: 'K4-7M9',
    opened_at: at,
    expires_at: at + 15 * minute,
  }
}

let offset = 0

/** The event as it is in the log, behind all others made so; `id` is the log's id of it, a new one unless given. */
export function recorded(event: DomainEvent, { id }: { id?: string } = {}): RecordedEvent {
  const place = offset++
  const meta = { eventId: id ?? `log_${place}`, time: 1, organizationId: null, environment: null }
  return {
    ...event,
    meta,
    value: Buffer.alloc(0),
    position: { topic: 'tidegate.gate.v1', partition: 0, offset: place },
  }
}

/** Gate's read model in a database of the test file's own, empty before each test. */
export const useGateWorld = (): ReadModel =>
  useReadModel(gateProjection, (event) => recorded(event))
