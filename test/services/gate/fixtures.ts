import { randomBytes } from 'node:crypto'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { asId, randomId } from '../../../infra/ids.ts'
import { evolveSession, isGateSessionEvent } from '../../../projections/gate/evolve.ts'
import type {
  AgentTokenRow,
  GateServiceRow,
  GateSessionRow,
} from '../../../projections/gate/tables.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type {
  GateServiceDefinition,
  GateSessionOpened,
  LoginSessionOpened,
} from '../../../schemas/events.ts'
import { decideApproval, decideApprovalStart } from '../../../services/gate/approval/decide.ts'
import { decideLoginApproval } from '../../../services/gate/login/decide.ts'
import { serviceDefaults } from '../../../services/gate/registry/fields.ts'
import {
  agentTokenTtlMs,
  deliveryTtlMs,
  type Proof,
  sessionTtlMs,
} from '../../../services/gate/sessions.ts'
import type { GateOwner } from '../../support/gate-world.ts'
import { organizationId } from '../../support/organization-rows.ts'
import { endpointId, endpoint as resultsEndpoint } from '../webhooks/endpoints/fixtures.ts'

export const now = 1_800_000_000_000
export const minute = 60_000
export const day = 24 * 60 * minute
export const scope = { organizationId, environment: 'live' } as const
/** Scopes that must not see anything in `scope`. */
export const strangers = [
  { ...scope, organizationId: asId('org', `org_${'2'.repeat(26)}`) },
  { ...scope, environment: 'test' },
] as const

/** Active endpoint that is subscribed to approvals. */
export const endpoint: EndpointRow = {
  ...resultsEndpoint,
  event_types: ['gate.session.approved'],
}

export const definition: GateServiceDefinition = {
  ...serviceDefaults,
  name: 'Acme Mail',
  description: 'Mail for agents.',
  website: 'https://acme.example',
  discoverable: true,
  webhook_endpoint_id: endpointId,
}

export const service: GateServiceRow = {
  id: 'acme-mail',
  organization_id: organizationId,
  environment: 'live',
  status: 'active',
  verified: false,
  verified_domain: null,
  definition,
  created_at: 1,
  updated_at: 1,
}

const opened = (at: number) => ({
  gate_session_id: randomId('gate', randomBytes),
  service_id: service.id,
  organization_id: organizationId,
  environment: 'live' as const,
  account_name: 'Robin',
  requested_ip: null,
  requested_user_agent: null,
  opened_at: at,
  expires_at: at + sessionTtlMs,
  confirmation_code: 'K4-7M9',
})

type Changes<Data> = Partial<Data> & { opened_at: number }

export function signupOpened(changes: Changes<GateSessionOpened>) {
  const data = {
    ...opened(changes.opened_at),
    delivery_key_id: 'key',
    delivery_public_key: 'public',
    poll_token_hash: 'poll',
    metadata: null,
    claim: null,
    ...changes,
  }
  return { type: 'GateSessionOpened', data } as const satisfies DomainEvent
}

export function loginOpened(changes: Changes<LoginSessionOpened>) {
  const data = {
    ...opened(changes.opened_at),
    gate_account_id: gateAccountId,
    dashboard_login_url: 'https://acme.example/auth/gate?from=cli',
    ...changes,
  }
  return { type: 'LoginSessionOpened', data } as const satisfies DomainEvent
}

/** Returns the events of a signup at that time that got an agent token. */
export function signedUp(
  { serviceId, organizationId: organization_id, environment }: GateOwner,
  { at, agent_token_hash, ...ids }: SignedUp,
) {
  const owner = { service_id: serviceId, organization_id, environment }
  const data = {
    ...credentials,
    ...ids,
    delivery_expires_at: at + deliveryTtlMs,
    agent_token_hash,
    agent_token_expires_at: at + agentTokenTtlMs,
    approved_at: at,
  }
  return [
    signupOpened({ ...owner, gate_session_id: ids.gate_session_id, opened_at: at }),
    { type: 'GateSessionApproved', data },
  ] as const satisfies DomainEvent[]
}

interface SignedUp {
  gate_session_id: string
  gate_account_id: string
  agent_token_hash: string
  at: number
}

/** Returns the session after the events. Throws if there is none. */
export function sessionAfter(
  session: GateSessionRow | undefined,
  events: readonly Pick<DecidedEvent, 'event'>[],
): GateSessionRow {
  const meta = { eventId: 'log_1', time: now, organizationId: null, environment: null }
  const position = { topic: 't', partition: 0, offset: 0 }
  const state = events.reduce<GateSessionRow | undefined>((row, { event }) => {
    const recorded = { ...event, meta, value: Buffer.alloc(0), position }
    return isGateSessionEvent(recorded) ? evolveSession(row, recorded) : row
  }, session)
  if (!state) throw new Error('there is no session')
  return state
}

/** Proof with the verdict `human`. */
export const proof: Proof = {
  verdict: 'human',
  riskScore: 12,
  sessionId: `sid_${'1'.repeat(26)}`,
  decisionId: `evt_${'1'.repeat(26)}`,
}
/** Proof as approval events have it. */
export const proven = {
  approve_token_hash: 'approve',
  verdict: 'human',
  risk_score: 12,
  proof_session_id: proof.sessionId,
  proof_decision_id: proof.decisionId,
}
export const gateAccountId = asId('gacct', `gacct_${'3'.repeat(26)}`)
/** Approval by a person in the agent's network. */
export const approval = {
  approveTokenHashes: ['approve', 'approve under an older key'] as [string, ...string[]],
  proof,
  gateAccountId,
  isSameNetwork: true,
  claimCodeHash: 'claim',
  now: now + minute,
}
export const credentials = {
  delivery_sealed: Buffer.from('sealed'),
  delivery_expires_at: now + deliveryTtlMs,
  ack_token_hash: 'ack',
  agent_token_hash: 'agent',
  agent_token_expires_at: now + agentTokenTtlMs,
  approved_at: now,
}

/** Undecided signup. */
export const pendingSignup = (changes: Partial<GateSessionRow> = {}): GateSessionRow => ({
  ...sessionAfter(undefined, [
    { event: signupOpened({ gate_session_id: `gate_${'4'.repeat(26)}`, opened_at: now }) },
  ]),
  ...changes,
})

const approvedBy = (session: GateSessionRow) =>
  decideApprovalStart({ session, endpointId, isClaimRequired: true }, approval)

/** Approved signup whose service has not responded. */
export const startedSignup = (changes: Partial<GateSessionRow> = {}): GateSessionRow => ({
  ...sessionAfter(pendingSignup(), approvedBy(pendingSignup())),
  ...changes,
})

/** Approved signup whose agent must send the claim code. */
export function claimingSignup(changes: Partial<GateSessionRow> = {}): GateSessionRow {
  const session = pendingSignup({ claim: 'supported' })
  return { ...sessionAfter(session, approvedBy(session)), ...changes }
}

/** Approved signup whose credentials wait for the agent. */
export const approvedSignup = (): GateSessionRow =>
  sessionAfter(startedSignup(), decideApproval(startedSignup(), credentials))

/** Undecided login. */
export const login = sessionAfter(undefined, [
  { event: loginOpened({ gate_session_id: `gate_${'5'.repeat(26)}`, opened_at: now }) },
])

export const approvedLogin = sessionAfter(
  login,
  decideLoginApproval(login, { ...approval, codeHash: 'code', now }),
)

/** Agent token that was just issued. */
export const token: AgentTokenRow = {
  gate_account_id: gateAccountId,
  gate_session_id: pendingSignup().id,
  service_id: service.id,
  organization_id: organizationId,
  environment: 'live',
  account_name: 'Robin',
  token_hash: 'token',
  status: 'active',
  created_at: now,
  expires_at: now + agentTokenTtlMs,
}

export const eventsOf = (decisions: DecidedEvent[]) => decisions.map(({ event }) => event)

/** Returns the types of the events, or the error's code with its field and issue. */
export function outcome(decide: () => DecidedEvent[]): string {
  try {
    return (
      eventsOf(decide())
        .map(({ type }) => type)
        .join(' ') || 'nothing'
    )
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const fields = error.details?.fields ?? []
    return [error.code, ...fields.map(({ name, issue }) => `${name} ${issue}`)].join(' ')
  }
}
