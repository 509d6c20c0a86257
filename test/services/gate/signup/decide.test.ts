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
import { systemService } from '../../../../services/gate/registry/registered.ts'
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
} from '../given.ts'

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

  test('says all that the read model needs, with an event id that follows from the session', () => {
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
    ['a disabled one', { service: { ...service, status: 'disabled' } }, refused],
    ['a hidden one', { service: { ...service, definition: hidden } }, refused],
    [
      'a suspended organization',
      { organization: { ...organization, status: 'suspended' } },
      refused,
    ],
    ['no organization', { organization: undefined }, refused],
    [
      'one that demands a claim, by an agent that cannot',
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
  ['a session that waits', pending, 0, 'GateSessionRejected'],
  ['one whose agent has to tell a code', claimingSignup(), 0, 'GateSessionRejected'],
  ['one whose time is over', pending, sessionTtlMs, 'gate.session_expired'],
  ['an expired one', expired, sessionTtlMs, 'gate.session_expired'],
  ['one that was declined', declined, sessionTtlMs, 'nothing'],
  ['one whose page was closed', closed, 0, 'nothing'],
  ['one whose service failed', failed, 0, 'nothing'],
  ['one that is being approved', started, sessionTtlMs, 'gate.approval_in_progress'],
  ['an approved one', approved, 0, 'gate.session_already_resolved'],
  ['none', undefined, 0, 'gate.session_not_found'],
])('declining %s', (_what, session, ms, expected) => {
  expect(outcome(() => decideDecline(session, { now: now + ms }))).toBe(expected)
})

test.each<[string, Row, number | null, number, string]>([
  ['is rejected after a while', pending, reloadMs, reloadMs, 'GateSessionRejected'],
  ['is not before, whatever the clock says', pending, reloadMs - 1, 10 * reloadMs, 'nothing'],
  ['is rejected where the clock is behind', pending, reloadMs, -reloadMs, 'GateSessionRejected'],
  ['is not when it was opened again', pending, null, reloadMs, 'nothing'],
  ['is not while the code is waited for', claimingSignup(), reloadMs, reloadMs, 'nothing'],
  ['is not once it is being approved', started, reloadMs, reloadMs, 'nothing'],
  ['is not once it is resolved', approved, reloadMs, reloadMs, 'nothing'],
  ['expires rather, when that is due, too', pending, sessionTtlMs, sessionTtlMs, 'nothing'],
])('a session whose page was closed %s', (_what, session, closedMs, ms, expected) => {
  expect(outcome(() => decideClosedPage({ session, closedMs }, { now: now + ms }))).toBe(expected)
})

const other = { acknowledgementId: 'other' }
test.each<[string, Row, object, string]>([
  ['the right token', approved, other, 'GateDeliveryAcknowledged'],
  ['a wrong one', approved, { ...other, isAckToken: false }, 'gate.delivery_ack_invalid'],
  ['the right one a second time', acknowledged, other, 'gate.delivery_consumed'],
  ['the same request again, at any time', acknowledged, { now: now + deliveryTtlMs }, 'nothing'],
  ['a wrong one afterwards', acknowledged, { isAckToken: false }, 'gate.delivery_ack_invalid'],
  ['the right one too late', approved, { now: now + deliveryTtlMs }, 'gate.delivery_consumed'],
  ['the right one of a delivery that has ended', gone, {}, 'gate.delivery_consumed'],
  ['a token before there is one', started, { isAckToken: false }, 'gate.delivery_ack_invalid'],
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
    'one that waits for a code',
    decideSessionExpiry,
    claimingSignup(),
    sessionTtlMs,
    'GateSessionExpired',
  ],
  ['a session before its time', decideSessionExpiry, pending, sessionTtlMs - 1, 'nothing'],
  ['a session that is being approved', decideSessionExpiry, started, sessionTtlMs, 'nothing'],
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

test('the read model says how a session ended, and has nothing of a delivery that has', () => {
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

/** Commands that a signup may get at a time. */
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

/** The stages of a signup, and those that may follow each. */
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

test('whatever is asked in whatever order, a signup goes from stage to stage, never back, and not after its time', () => {
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
        // A command that changes no stage decides nothing.
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
