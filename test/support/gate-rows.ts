import { randomBytes } from 'node:crypto'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { asId, randomId } from '../../infra/ids.ts'
import { evolveSession, isGateSessionEvent } from '../../projections/gate/evolve.ts'
import type { AgentTokenRow, GateSessionRow } from '../../projections/gate/tables.ts'
import type { GateSessionOpened, LoginSessionOpened } from '../../schemas/events.ts'
import {
  agentTokenTtlMs,
  codeTtlMs,
  deliveryTtlMs,
  type Proof,
  sessionTtlMs,
} from '../../services/gate/sessions.ts'
import type { GateOwner } from './gate-world.ts'
import { organizationId } from './organization-rows.ts'

export const now = 1_800_000_000_000
export const minute = 60_000
export const day = 24 * 60 * minute
const gateAccountId = asId('gacct', `gacct_${'3'.repeat(26)}`)

const request = (at: number) => ({
  gate_session_id: randomId('gate', randomBytes),
  service_id: 'acme',
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

/** Somebody asked for a signup just then; with an id of its own, unless `changes` have one. */
export function signupOpened(changes: Changes<GateSessionOpened>) {
  const sealedTo = {
    delivery_key_id: 'key',
    delivery_public_key: 'public',
    poll_token_hash: 'poll',
  }
  const data = {
    ...request(changes.opened_at),
    ...sealedTo,
    metadata: null,
    claim: null,
    ...changes,
  }
  return { type: 'GateSessionOpened', data } as const satisfies DomainEvent
}

/** The same of a login. */
export function loginOpened(changes: Changes<LoginSessionOpened>) {
  const of = {
    gate_account_id: gateAccountId,
    dashboard_login_url: 'https://acme.example/auth/gate?from=cli',
  }
  const data = { ...request(changes.opened_at), ...of, ...changes }
  return { type: 'LoginSessionOpened', data } as const satisfies DomainEvent
}

interface SignedUp {
  gate_session_id: string
  gate_account_id: string
  agent_token_hash: string
  at: number
}

/** Somebody signed up for the service just then, and got an agent token. */
export function signedUp(
  { serviceId, organizationId: organization_id, environment }: GateOwner,
  { gate_session_id, gate_account_id, agent_token_hash, at }: SignedUp,
) {
  const opened = {
    gate_session_id,
    service_id: serviceId,
    organization_id,
    environment,
    opened_at: at,
  }
  const data = {
    gate_session_id,
    gate_account_id,
    delivery_sealed: Buffer.from('sealed'),
    delivery_expires_at: at + deliveryTtlMs,
    ack_token_hash: 'ack',
    agent_token_hash,
    agent_token_expires_at: at + agentTokenTtlMs,
    approved_at: at,
  }
  return [
    signupOpened(opened),
    { type: 'GateSessionApproved', data },
  ] as const satisfies DomainEvent[]
}

/** The session after the events; throws when there is none. */
export function sessionAfter(
  session: GateSessionRow | undefined,
  events: DomainEvent[],
): GateSessionRow {
  const meta = { eventId: 'log_1', time: now, organizationId: null, environment: null }
  const state = events.reduce<GateSessionRow | undefined>((row, event, offset) => {
    const recorded = {
      ...event,
      meta,
      value: Buffer.alloc(0),
      position: { topic: 't', partition: 0, offset },
    }
    return isGateSessionEvent(recorded) ? evolveSession(row, recorded) : row
  }, session)
  if (!state) throw new Error('there is no session')
  return state
}

/** A person is behind the browser that approves. */
export const proof: Proof = {
  verdict: 'human',
  riskScore: 12,
  sessionId: `sid_${'1'.repeat(26)}`,
  decisionId: `evt_${'1'.repeat(26)}`,
}
const proofOf = {
  verdict: proof.verdict,
  risk_score: proof.riskScore,
  proof_session_id: proof.sessionId,
  proof_decision_id: proof.decisionId,
}

/** A signup that nobody has decided about. */
export const pendingSignup = (changes: Partial<GateSessionRow> = {}): GateSessionRow => ({
  ...sessionAfter(undefined, [
    signupOpened({ gate_session_id: `gate_${'4'.repeat(26)}`, opened_at: now }),
  ]),
  ...changes,
})

/** One that a person approved and whose service has not answered. */
export const startedSignup = (changes: Partial<GateSessionRow> = {}): GateSessionRow => ({
  ...sessionAfter(pendingSignup(), [
    {
      type: 'GateSessionApprovalStarted',
      data: {
        ...proofOf,
        gate_session_id: pendingSignup().id,
        gate_account_id: gateAccountId,
        webhook_endpoint_id: `we_${'0'.repeat(32)}`,
        approve_token_hash: 'approve',
        started_at: now + minute,
      },
    },
  ]),
  ...changes,
})

/** One that a person approved and whose agent has to tell the code. */
export const claimingSignup = (changes: Partial<GateSessionRow> = {}): GateSessionRow => ({
  ...sessionAfter(pendingSignup({ claim: 'supported' }), [
    {
      type: 'GateSessionClaimRequested',
      data: {
        ...proofOf,
        gate_session_id: pendingSignup().id,
        gate_account_id: gateAccountId,
        approve_token_hash: 'approve',
        claim_code_hash: 'code',
        requested_at: now + minute,
      },
    },
  ]),
  ...changes,
})

/** A login that waits for consent. */
export const login = sessionAfter(undefined, [
  loginOpened({
    gate_session_id: `gate_${'5'.repeat(26)}`,
    opened_at: now,
    requested_ip: '203.0.113.9',
    requested_user_agent: 'agent',
  }),
])

/** The same after a person approved it. */
export const approvedLogin = sessionAfter(login, [
  {
    type: 'LoginSessionApproved',
    data: {
      ...proofOf,
      gate_session_id: login.id,
      approve_token_hash: 'approve',
      code_hash: 'code',
      code_expires_at: now + codeTtlMs,
      approved_at: now,
    },
  },
])

/** An agent token that was issued just now. */
export const token: AgentTokenRow = {
  gate_account_id: gateAccountId,
  gate_session_id: pendingSignup().id,
  service_id: 'acme',
  organization_id: organizationId,
  environment: 'live',
  account_name: 'Robin',
  token_hash: 'token',
  status: 'active',
  created_at: now,
  expires_at: now + agentTokenTtlMs,
}
