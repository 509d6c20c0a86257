import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DecidedEvent } from '../../../../infra/event-store/decide.ts'
import { asId } from '../../../../infra/ids.ts'
import type { GateSessionRow } from '../../../../projections/gate/tables.ts'
import {
  decideApproval,
  decideApprovalFailure,
  decideApprovalStart,
} from '../../../../services/gate/approval/decide.ts'
import { systemService } from '../../../../services/gate/registry/registered-services.ts'
import { codeTtlMs, deliveryTtlMs, sessionTtlMs } from '../../../../services/gate/sessions.ts'
import {
  decideAcknowledgement,
  decideClosedPage,
  decideCodeExpiry,
  decideDecline,
  decideDeliveryExpiry,
  decideOpening,
  decideSessionExpiry,
  reloadMs,
} from '../../../../services/gate/signup/decide.ts'
import { fastCheckSettings } from '../../../support/bad-delivery.ts'
import { amount } from '../../../support/long.ts'
import { organization } from '../../../support/organization-rows.ts'
import {
  approval,
  approvedLogin,
  approvedSignup,
  claimingSignup,
  credentials,
  eventsOf,
  now,
  outcome,
  pendingSignup,
  service,
  sessionAfter,
  startedSignup,
} from '../fixtures.ts'

type Row = GateSessionRow | undefined

const pending = pendingSignup()
const started = startedSignup()
const approved = approvedSignup()
const ack = { acknowledgementId: 'this', now }
const afterwards = {
  declined: sessionAfter(pending, decideDecline(pending, { now })),
  closed: sessionAfter(
    pending,
    decideClosedPage({ session: pending, closedMs: reloadMs }, { now }),
  ),
  failed: sessionAfter(started, decideApprovalFailure(started, { problem: 'It is silent.', now })),
  expired: sessionAfter(pending, decideSessionExpiry(pending, { now: now + sessionTtlMs })),
  acknowledged: sessionAfter(
    approved,
    decideAcknowledgement({ session: approved, isAckToken: true }, ack),
  ),
  gone: sessionAfter(approved, decideDeliveryExpiry(approved, { now: now + deliveryTtlMs })),
}
const { declined, closed, failed, expired, acknowledged, gone } = afterwards

describe('opening a session', () => {
  const command = {
    gateSessionId: asId('gate', `gate_${'1'.repeat(26)}`),
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
  const open = { service, organization, session: undefined }
  const builtIn = systemService('https://tidegate.example')

  test('records everything that the read model needs, with an event id derived from the session', () => {
    const decisions = decideOpening({ ...open, service: builtIn, organization: undefined }, command)
    expect(eventsOf(decisions)).toEqual([
      {
        type: 'GateSessionOpened',
        data: {
          gate_session_id: command.gateSessionId,
          service_id: 'tidegate',
          organization_id: null,
          environment: 'live',
          ...command.spec,
          poll_token_hash: 'poll',
          opened_at: now,
          expires_at: now + sessionTtlMs,
          confirmation_code: 'K4-7M9',
        },
      },
    ])
    expect(decideOpening(open, command)[0]?.meta.eventId).toBe(decisions[0]?.meta.eventId)
  })

  const claiming = { ...service.definition, claim_required: true }
  const hidden = { ...service.definition, discoverable: false }
  const refused = 'request.not_found'
  test.each<[string, Partial<Parameters<typeof decideOpening>[0]>, string]>([
    ['an active service of an active organization', {}, 'GateSessionOpened'],
    ['no service', { service: undefined }, refused],
    ['a disabled service', { service: { ...service, status: 'disabled' } }, refused],
    [
      'a service that is not discoverable',
      { service: { ...service, definition: hidden } },
      refused,
    ],
    [
      'a suspended organization',
      { organization: { ...organization, status: 'suspended' } },
      refused,
    ],
    ['no organization', { organization: undefined }, refused],
    [
      'a service that requires a claim, by an agent without support',
      { service: { ...service, definition: claiming } },
      'gate.validation_failed claim required',
    ],
    [
      'a repetition, whatever became of the rest',
      { service: undefined, session: declined },
      'nothing',
    ],
  ])('for %s', (_what, changes, expected) => {
    expect(outcome(() => decideOpening({ ...open, ...changes }, command))).toBe(expected)
  })
})

test.each<[string, Row, number, string]>([
  ['an undecided session', pending, 0, 'GateSessionRejected'],
  ['a session that waits for the claim code', claimingSignup(), 0, 'GateSessionRejected'],
  ['a session past its time', pending, sessionTtlMs, 'gate.session_expired'],
  ['an expired session', expired, sessionTtlMs, 'gate.session_expired'],
  ['a declined session', declined, sessionTtlMs, 'nothing'],
  ['a session that was rejected when its page was closed', closed, 0, 'nothing'],
  ['a session whose service failed', failed, 0, 'nothing'],
  ['a session whose approval is in progress', started, sessionTtlMs, 'gate.approval_in_progress'],
  ['an approved session', approved, 0, 'gate.session_already_resolved'],
  ['no session', undefined, 0, 'gate.session_not_found'],
])('declining %s', (_what, session, ms, expected) => {
  expect(outcome(() => decideDecline(session, { now: now + ms }))).toBe(expected)
})

test.each<[string, Row, number | null, number, string]>([
  ['is rejected after a while', pending, reloadMs, reloadMs, 'GateSessionRejected'],
  [
    'is not rejected before that, whatever the clock',
    pending,
    reloadMs - 1,
    10 * reloadMs,
    'nothing',
  ],
  ['is rejected even if the clock is behind', pending, reloadMs, -reloadMs, 'GateSessionRejected'],
  ['is not rejected if it was opened again', pending, null, reloadMs, 'nothing'],
  [
    'is not rejected while it waits for the claim code',
    claimingSignup(),
    reloadMs,
    reloadMs,
    'nothing',
  ],
  ['is not rejected once its approval has started', started, reloadMs, reloadMs, 'nothing'],
  ['is not rejected once it is resolved', approved, reloadMs, reloadMs, 'nothing'],
  ['expires instead if that is due, too', pending, sessionTtlMs, sessionTtlMs, 'nothing'],
])('a session whose page was closed %s', (_what, session, closedMs, ms, expected) => {
  expect(outcome(() => decideClosedPage({ session, closedMs }, { now: now + ms }))).toBe(expected)
})

const other = { acknowledgementId: 'other' }
test.each<[string, Row, object, string]>([
  ['the right token', approved, other, 'GateDeliveryAcknowledged'],
  ['a wrong token', approved, { ...other, isAckToken: false }, 'gate.delivery_ack_invalid'],
  ['the right token a second time', acknowledged, other, 'gate.delivery_consumed'],
  ['the same request again, at any time', acknowledged, { now: now + deliveryTtlMs }, 'nothing'],
  [
    'a wrong token after the right one',
    acknowledged,
    { isAckToken: false },
    'gate.delivery_ack_invalid',
  ],
  ['the right token too late', approved, { now: now + deliveryTtlMs }, 'gate.delivery_consumed'],
  ['the right token for an ended delivery', gone, {}, 'gate.delivery_consumed'],
  ['a token before the approval', started, { isAckToken: false }, 'gate.delivery_ack_invalid'],
  ['a token of a rejected session', declined, { isAckToken: false }, 'gate.delivery_ack_invalid'],
  ['a token of an expired session', expired, { isAckToken: false }, 'gate.session_expired'],
])('acknowledging with %s', (_what, session, changes, expected) => {
  const { isAckToken, ...command } = { isAckToken: true, ...ack, ...changes }
  expect(outcome(() => decideAcknowledgement({ session, isAckToken }, command))).toBe(expected)
})

const used = { ...approvedLogin, code: 'consumed' } as const
test.each<[string, typeof decideCodeExpiry, Row, number, string]>([
  ['a session', decideSessionExpiry, pending, sessionTtlMs, 'GateSessionExpired'],
  [
    'a session that waits for the claim code',
    decideSessionExpiry,
    claimingSignup(),
    sessionTtlMs,
    'GateSessionExpired',
  ],
  ['a session before its time', decideSessionExpiry, pending, sessionTtlMs - 1, 'nothing'],
  [
    'a session whose approval is in progress',
    decideSessionExpiry,
    started,
    sessionTtlMs,
    'nothing',
  ],
  ['a resolved session', decideSessionExpiry, declined, sessionTtlMs, 'nothing'],
  ['no session', decideSessionExpiry, undefined, sessionTtlMs, 'nothing'],
  ['a delivery', decideDeliveryExpiry, approved, deliveryTtlMs, 'GateDeliveryExpired'],
  ['a delivery before its time', decideDeliveryExpiry, approved, deliveryTtlMs - 1, 'nothing'],
  ['an acknowledged delivery', decideDeliveryExpiry, acknowledged, deliveryTtlMs, 'nothing'],
  ['a code', decideCodeExpiry, approvedLogin, codeTtlMs, 'LoginCodeExpired'],
  ['a code before its time', decideCodeExpiry, approvedLogin, codeTtlMs - 1, 'nothing'],
  ['a used code', decideCodeExpiry, used, codeTtlMs, 'nothing'],
])('time passes for %s', (_what, decide, session, ms, expected) => {
  expect(outcome(() => decide(session, { now: now + ms }))).toBe(expected)
})

test('the read model stores how a session ended, and clears an ended delivery', () => {
  expect(approved.delivery_sealed).not.toBeNull()
  expect(afterwards).toMatchObject({
    declined: { status: 'rejected', rejection: 'declined' },
    closed: { status: 'rejected', rejection: 'closed' },
    failed: { status: 'rejected', rejection: 'integrator_failed' },
    expired: { status: 'expired', delivery: null },
    acknowledged: { status: 'approved', delivery: 'acknowledged', delivery_sealed: null },
    gone: { status: 'approved', delivery: 'expired', delivery_sealed: null },
  })
})

/** Commands that a signup can get at a time. */
const commands: Record<string, (session: GateSessionRow, now: number) => DecidedEvent[]> = {
  approve: (session, now) =>
    decideApprovalStart(
      { session, endpointId: 'we_1', isClaimRequired: false },
      { ...approval, now },
    ),
  'approve elsewhere': (session, now) =>
    decideApprovalStart(
      { session, endpointId: 'we_1', isClaimRequired: false },
      { ...approval, approveTokenHashes: ['of another page'], now },
    ),
  'service answers': (session, now) =>
    decideApproval(session, {
      ...credentials,
      delivery_expires_at: now + deliveryTtlMs,
      approved_at: now,
    }),
  'service fails': (session, now) => decideApprovalFailure(session, { problem: 'No.', now }),
  cancel: (session, now) => decideDecline(session, { now }),
  close: (session, now) => decideClosedPage({ session, closedMs: reloadMs }, { now }),
  ack: (session, now) =>
    decideAcknowledgement(
      { session, isAckToken: session.ack_token_hash !== null },
      { acknowledgementId: String(now), now },
    ),
  'time passes': (session, now) => [
    ...decideSessionExpiry(session, { now }),
    ...decideDeliveryExpiry(session, { now }),
  ],
}

/** Stages of a signup, and the stages that can follow each. */
const stages: Record<string, string[]> = {
  pending: ['started', 'declined', 'closed', 'expired'],
  started: ['waiting', 'integrator_failed'],
  waiting: ['acknowledged', 'gone'],
  ...Object.fromEntries(
    ['declined', 'closed', 'expired', 'integrator_failed', 'acknowledged', 'gone'].map((end) => [
      end,
      [],
    ]),
  ),
}

function stageOf({ status, approval_started_at, rejection, delivery }: GateSessionRow): string {
  if (status === 'pending') return approval_started_at === null ? 'pending' : 'started'
  if (delivery === 'expired') return 'gone'
  return rejection ?? delivery ?? status
}

test('in any order of commands, a signup only moves forward, and not after its expiry', () => {
  const step = fc.record({
    name: fc.constantFrom(...Object.keys(commands)),
    ms: fc.constantFrom(0, 0, 0, 1, sessionTtlMs - 1, sessionTtlMs, deliveryTtlMs),
  })
  const begins = fc.constantFrom(pending, started, approved)
  const seen = new Set<string>()
  const property = fc.property(begins, fc.array(step, { maxLength: 25 }), (begin, steps) => {
    let [session, at] = [begin, now]
    for (const { name, ms } of steps) {
      at += ms
      const before = stageOf(session)
      const until = before === 'waiting' ? session.delivery_expires_at : session.expires_at
      const decision = outcome(() => {
        const decided = commands[name]?.(session, at) ?? []
        session = sessionAfter(session, decided)
        return decided
      })
      const stage = stageOf(session)
      seen.add(stage)
      if (stage === before) {
        // A command that keeps the stage returns no event.
        expect(decision, `${name} of ${before}`).toMatch(/^(nothing|gate\..*)$/)
        continue
      }
      expect(stages[before], `${name} of ${before}`).toContain(stage)
      const isOver = at >= (until ?? 0)
      if (before !== 'started')
        expect(isOver, `${name} of ${before}`).toBe(stage === 'expired' || stage === 'gone')
    }
  })
  fc.assert(property, fastCheckSettings(amount({ few: 500, many: 3000 })))
  expect([...seen].toSorted()).toEqual(Object.keys(stages).toSorted())
})
