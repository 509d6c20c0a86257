import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { gateProjection } from '../../../projections/gate/projection.ts'
import { systemService } from '../../../services/gate/registry/registered-services.ts'
import { recordedIn, useReadModel } from '../read-model.ts'
import { id } from '../world-events.ts'

export const topic = 'tidegate.gate.v1'
export const minute = 60_000
export const day = 24 * 60 * minute
/** Arbitrary base time. */
export const start = 1_760_000_000_000
export const gate = (n: number) => id('gate', n)
export const gacct = (n: number) => id('gacct', n)
const tenant = { organization_id: id('org', 1), environment: 'live' } as const
const { definition } = systemService('https://acme.example')
const proof = {
  verdict: 'human',
  risk_score: 12,
  proof_session_id: id('sid', 1),
  proof_decision_id: id('evt', 1),
}

type Data<Type extends DomainEvent['type']> = Extract<DomainEvent, { type: Type }>['data']
const event = <Type extends DomainEvent['type']>(type: Type, data: Data<Type>) =>
  ({ type, data }) as DomainEvent

const service = (n: number) => ({ service_id: `service-${n}`, ...tenant })
const session = (n: number) => ({ gate_session_id: gate(n) })
const account = (n: number) => ({ ...session(n), gate_account_id: gacct(n) })
const asked = (n: number, at: number) => ({
  ...session(n),
  ...service(n),
  account_name: `Robin ${n}`,
  requested_ip: '203.0.113.9',
  requested_user_agent: 'agent',
  confirmation_code: 'K4-7M9',
  opened_at: at,
  expires_at: at + 15 * minute,
})

/** Makes events about the service, signup or login number `n`, each at a different time. */
export const events = {
  registered: (n: number, at: number) =>
    event('GateServiceRegistered', { ...service(n), definition, registered_at: at }),
  changed: (n: number, at: number) =>
    event('GateServiceChanged', {
      ...service(n),
      definition: { ...definition, name: `${at}\u0000` },
      changed_at: at,
    }),
  verified: (n: number, at: number) =>
    event('GateServiceVerified', { ...service(n), verified_at: at }),
  withdrawn: (n: number, at: number) =>
    event('GateServiceVerificationWithdrawn', { ...service(n), withdrawn_at: at }),
  domainVerified: (n: number, at: number) =>
    event('GateServiceDomainVerified', {
      ...service(n),
      domain: `d${at}.example`,
      proof: 'dns',
      verified_at: at,
    }),
  disabled: (n: number, at: number) =>
    event('GateServiceDisabled', { ...service(n), disabled_at: at }),
  opened: (n: number, at: number) =>
    event('GateSessionOpened', {
      ...asked(n, at),
      metadata: '{"a":"\\u0000"}',
      delivery_key_id: 'key',
      delivery_public_key: 'public',
      poll_token_hash: `poll ${at}`,
      claim: at % 2 === 0 ? 'supported' : null,
    }),
  loginOpened: (n: number, at: number) =>
    event('LoginSessionOpened', {
      ...asked(n, at),
      gate_account_id: gacct(n),
      dashboard_login_url: `https://acme.example/${at}\u0000`,
    }),
  started: (n: number, at: number) =>
    event('GateSessionApprovalStarted', {
      ...account(n),
      webhook_endpoint_id: null,
      approve_token_hash: `approve ${at}`,
      ...proof,
      started_at: at,
    }),
  claimRequested: (n: number, at: number) =>
    event('GateSessionClaimRequested', {
      ...account(n),
      approve_token_hash: `approve ${at}`,
      claim_code_hash: `claim ${at}`,
      ...proof,
      requested_at: at,
    }),
  claimFailed: (n: number, at: number) =>
    event('GateSessionClaimFailed', { ...account(n), failed_at: at }),
  claimed: (n: number, at: number) =>
    event('GateSessionClaimed', { ...account(n), webhook_endpoint_id: null, claimed_at: at }),
  accepted: (n: number, at: number) =>
    event('GateVariablesAccepted', { ...account(n), env_vars: [`KEY_${at}`], accepted_at: at }),
  approved: (n: number, at: number) =>
    event('GateSessionApproved', {
      ...account(n),
      delivery_sealed: Buffer.from([0, 255, n]),
      delivery_expires_at: at + day,
      ack_token_hash: `ack ${at}`,
      agent_token_hash: n % 3 === 0 ? null : `agent ${n}`,
      agent_token_expires_at: n % 3 === 0 ? null : at + 90 * day,
      approved_at: at,
    }),
  rejected: (n: number, at: number) =>
    event('GateSessionRejected', {
      ...session(n),
      reason: 'integrator_failed',
      problem: `At ${at}\u0000.`,
      rejected_at: at,
    }),
  expired: (n: number, at: number) =>
    event('GateSessionExpired', { ...session(n), expired_at: at }),
  acknowledged: (n: number, at: number) =>
    event('GateDeliveryAcknowledged', {
      ...session(n),
      acknowledgement_id: `ack ${at}`,
      acknowledged_at: at,
    }),
  deliveryExpired: (n: number, at: number) =>
    event('GateDeliveryExpired', { ...session(n), expired_at: at }),
  loginApproved: (n: number, at: number) =>
    event('LoginSessionApproved', {
      ...session(n),
      code_hash: `code ${at}`,
      code_expires_at: at + 5 * minute,
      approve_token_hash: `approve ${at}`,
      ...proof,
      approved_at: at,
    }),
  codeConsumed: (n: number, at: number) =>
    event('LoginCodeConsumed', { ...session(n), consumption_id: `use ${at}`, consumed_at: at }),
  codeExpired: (n: number, at: number) =>
    event('LoginCodeExpired', { ...session(n), expired_at: at }),
  renewed: (n: number, at: number) =>
    event('AgentTokenRenewed', { ...account(n), expires_at: at + 90 * day, renewed_at: at }),
  revoked: (n: number, at: number) => event('AgentTokenRevoked', { ...account(n), revoked_at: at }),
}

/** Generates random signups and logins, as the routes would decide them. */
const stories: (keyof typeof events)[][] = [
  ['registered', 'verified', 'opened', 'started', 'approved', 'acknowledged', 'renewed', 'changed'],
  ['opened', 'started', 'approved', 'revoked'],
  ['opened', 'started', 'approved', 'deliveryExpired'],
  ['opened', 'started', 'rejected'],
  ['opened', 'started'],
  ['opened', 'rejected'],
  ['opened', 'expired', 'registered', 'disabled'],
  ['opened'],
  ['loginOpened', 'loginApproved', 'codeConsumed'],
  ['loginOpened', 'loginApproved', 'codeExpired'],
  ['loginOpened', 'loginApproved'],
  ['loginOpened', 'expired'],
]

export const gateStory = (n: number): DomainEvent[] =>
  (stories[n % stories.length] ?? []).map((kind, step) => events[kind](n, start + step))

export const recorded = recordedIn(topic)

/** Sets up Gate's read model in a database for the test file, emptied before each test. */
export const useGateWorld = () => useReadModel(gateProjection, (event) => recorded(event))
