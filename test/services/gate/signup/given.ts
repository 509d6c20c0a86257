import { ApiError } from '../../../../infra/errors/errors.ts'
import type { DecidedEvent } from '../../../../infra/event-store/decide.ts'
import { asId } from '../../../../infra/ids.ts'
import type { GateSessionRow } from '../../../../projections/gate/tables.ts'
import {
  decideApproval,
  decideApprovalFailure,
  decideApprovalStart,
} from '../../../../services/gate/approval/decide.ts'
import { systemService } from '../../../../services/gate/registry/registered.ts'
import { deliveryTtlMs } from '../../../../services/gate/sessions.ts'
import { decideOpening } from '../../../../services/gate/signup/decide.ts'
import { now, proof, sessionAfter } from '../../../support/gate-rows.ts'

export const gateSessionId = asId('gate', `gate_${'1'.repeat(26)}`)
export const service = systemService('https://tidegate.example')

export const command = {
  gateSessionId,
  spec: {
    account_name: 'Robin',
    metadata: null,
    delivery_key_id: 'key',
    delivery_public_key: 'public',
    requested_ip: '203.0.113.9',
    requested_user_agent: 'agent',
    claim: null,
  },
  pollTokenHash: 'poll',
  confirmationCode: 'K4-7M9',
  now,
}

/** The session after the decisions. */
export const after = (
  session: GateSessionRow | undefined,
  decisions: DecidedEvent[],
): GateSessionRow =>
  sessionAfter(
    session,
    decisions.map(({ event }) => event),
  )

export const opening = { service, organization: undefined, session: undefined }
/** A signup that waits for consent since just now. */
export const pending = after(undefined, decideOpening(opening, command))

export const start = {
  approveTokenHashes: ['approve'] as [string, ...string[]],
  gateAccountId: asId('gacct', `gacct_${'2'.repeat(26)}`),
  isSameNetwork: true,
  claimCodeHash: 'claim',
}

export const startedAt = (session: GateSessionRow, at: number, command = start) =>
  decideApprovalStart(
    { session, endpointId: null, isClaimRequired: false },
    { ...command, proof, now: at },
  )
export const started = after(pending, startedAt(pending, now))

export const approvedAt = (session: GateSessionRow, at: number) =>
  decideApproval(session, {
    delivery_sealed: Buffer.from([1]),
    delivery_expires_at: at + deliveryTtlMs,
    ack_token_hash: 'ack',
    agent_token_hash: null,
    agent_token_expires_at: null,
    approved_at: at,
  })
export const approved = after(started, approvedAt(started, now))
export const failedAt = (session: GateSessionRow, at: number) =>
  decideApprovalFailure(session, { problem: 'It timed out.', now: at })

/** What the decider did: the types of its events, or the code that it refused with. */
export function outcome(decide: () => DecidedEvent[]): string {
  try {
    return (
      decide()
        .map(({ event }) => event.type)
        .join(' ') || 'nothing'
    )
  } catch (error) {
    if (error instanceof ApiError) return error.code
    throw error
  }
}
