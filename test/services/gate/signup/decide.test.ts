import { describe, expect, test } from 'vitest'
import type { GateSessionRow } from '../../../../projections/gate/tables.ts'
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
import { now } from '../../../support/gate-rows.ts'
import { organization } from '../../../support/organization-rows.ts'
import {
  after,
  approved,
  command,
  gateSessionId,
  opening,
  outcome,
  pending,
  service,
  started,
} from './given.ts'

const declined = after(pending, decideDecline(pending, { now }))
const expired = after(pending, decideSessionExpiry(pending, { now: now + sessionTtlMs }))
const ack = { acknowledgementId: 'this', now }
const acknowledged = after(
  approved,
  decideAcknowledgement({ session: approved, isAckToken: true }, ack),
)

describe('opening a session', () => {
  test('says all that the read model needs, with ids that follow from the session', () => {
    const [decision] = decideOpening(opening, command)
    expect(decision?.event).toEqual({
      type: 'GateSessionOpened',
      data: {
        gate_session_id: gateSessionId,
        service_id: 'tidegate',
        organization_id: null,
        environment: 'live',
        ...command.spec,
        poll_token_hash: 'poll',
        opened_at: now,
        expires_at: now + sessionTtlMs,
        confirmation_code: command.confirmationCode,
      },
    })
    expect(decision).toEqual(decideOpening(opening, command)[0])
  })

  test('again does nothing, whatever became of the service', () => {
    expect(
      decideOpening({ service: undefined, organization: undefined, session: declined }, command),
    ).toEqual([])
  })

  const owned = { ...service, id: 'acme', organization_id: organization.id }
  const open = { ...opening, service: owned, organization }
  test.each([
    ['an active service of an active organization', open, 'GateSessionOpened'],
    ['no service', { ...open, service: undefined }, 'request.not_found'],
    [
      'a disabled one',
      { ...open, service: { ...owned, status: 'disabled' as const } },
      'request.not_found',
    ],
    [
      'a hidden one',
      { ...open, service: { ...owned, definition: { ...owned.definition, discoverable: false } } },
      'request.not_found',
    ],
    [
      'a suspended organization',
      { ...open, organization: { ...organization, status: 'suspended' as const } },
      'request.not_found',
    ],
    ['no organization', { ...open, organization: undefined }, 'request.not_found'],
  ])('for %s', (_what, state, expected) => {
    expect(outcome(() => decideOpening(state, command))).toBe(expected)
  })
})

type Row = GateSessionRow | undefined

test.each<[string, Row, number, string]>([
  ['a session that waits', pending, 0, 'GateSessionRejected'],
  ['one whose time is over', pending, sessionTtlMs, 'gate.session_expired'],
  ['an expired one', expired, sessionTtlMs, 'gate.session_expired'],
  ['one that was declined', declined, sessionTtlMs, 'nothing'],
  ['one that is being approved', started, sessionTtlMs, 'gate.approval_in_progress'],
  ['an approved one', approved, 0, 'gate.session_already_resolved'],
  ['none', undefined, 0, 'gate.session_not_found'],
])('declining %s', (_what, session, ms, expected) => {
  expect(outcome(() => decideDecline(session, { now: now + ms }))).toBe(expected)
})

test.each<[string, Row, number | null, number, string]>([
  ['is rejected after a while', pending, reloadMs, reloadMs, 'GateSessionRejected'],
  [
    'is not before, whatever the clock of this process says',
    pending,
    reloadMs - 1,
    10 * reloadMs,
    'nothing',
  ],
  [
    'is rejected even where that clock is behind',
    pending,
    reloadMs,
    -10 * reloadMs,
    'GateSessionRejected',
  ],
  ['is not when it was opened again', pending, null, reloadMs, 'nothing'],
  ['is not once it is being approved', started, reloadMs, reloadMs, 'nothing'],
  ['is not once it is resolved', approved, reloadMs, reloadMs, 'nothing'],
  ['expires rather, when that is due, too', pending, sessionTtlMs, sessionTtlMs, 'nothing'],
])('a session whose page was closed %s', (_what, session, closingForMs, ms, expected) => {
  expect(outcome(() => decideClosedPage({ session, closingForMs }, { now: now + ms }))).toBe(
    expected,
  )
})

test('why a session was rejected is told apart', () => {
  const byPage = after(
    pending,
    decideClosedPage({ session: pending, closingForMs: reloadMs }, { now: now + reloadMs }),
  )
  expect([declined.rejection, byPage.rejection]).toEqual(['declined', 'closed'])
})

test.each<[string, Row, boolean, number, string]>([
  ['the right token', approved, true, 0, 'GateDeliveryAcknowledged'],
  ['a wrong one', approved, false, 0, 'gate.delivery_ack_invalid'],
  ['the right one a second time', acknowledged, true, 0, 'gate.delivery_consumed'],
  ['the right one too late', approved, true, deliveryTtlMs, 'gate.delivery_consumed'],
  ['a token before there is one', started, false, 0, 'gate.delivery_ack_invalid'],
  ['a token of a rejected session', declined, false, 0, 'gate.delivery_ack_invalid'],
  ['a token of an expired session', expired, false, sessionTtlMs, 'gate.session_expired'],
])('acknowledging with %s', (_what, session, isAckToken, ms, expected) => {
  expect(outcome(() => decideAcknowledgement({ session, isAckToken }, other(ms)))).toBe(expected)
})

const other = (ms: number) => ({ acknowledgementId: 'other', now: now + ms })

test('acknowledging again by the same request does nothing, at any time, unless the token is wrong', () => {
  const again = (isAckToken: boolean) =>
    outcome(() =>
      decideAcknowledgement(
        { session: acknowledged, isAckToken },
        { ...ack, now: now + deliveryTtlMs },
      ),
    )
  expect([again(true), again(false)]).toEqual(['nothing', 'gate.delivery_ack_invalid'])
  const late = after(approved, decideDeliveryExpiry(approved, { now: now + deliveryTtlMs }))
  expect(outcome(() => decideAcknowledgement({ session: late, isAckToken: true }, ack))).toBe(
    'gate.delivery_consumed',
  )
})

const issued = {
  ...pending,
  kind: 'login',
  status: 'approved',
  code: 'issued',
  code_expires_at: now + codeTtlMs,
} as const
test.each<
  [
    string,
    (session: Row, at: { now: number }) => ReturnType<typeof decideCodeExpiry>,
    Row,
    number,
    string,
  ]
>([
  ['a session', decideSessionExpiry, pending, sessionTtlMs, 'GateSessionExpired'],
  ['a session before its time', decideSessionExpiry, pending, sessionTtlMs - 1, 'nothing'],
  ['a session that is being approved', decideSessionExpiry, started, sessionTtlMs, 'nothing'],
  ['a resolved session', decideSessionExpiry, declined, sessionTtlMs, 'nothing'],
  ['no session', decideSessionExpiry, undefined, sessionTtlMs, 'nothing'],
  ['a delivery', decideDeliveryExpiry, approved, deliveryTtlMs, 'GateDeliveryExpired'],
  ['a delivery before its time', decideDeliveryExpiry, approved, deliveryTtlMs - 1, 'nothing'],
  ['an acknowledged delivery', decideDeliveryExpiry, acknowledged, deliveryTtlMs, 'nothing'],
  ['a code', decideCodeExpiry, issued, codeTtlMs, 'LoginCodeExpired'],
  ['a code before its time', decideCodeExpiry, issued, codeTtlMs - 1, 'nothing'],
  ['a used code', decideCodeExpiry, { ...issued, code: 'consumed' }, codeTtlMs, 'nothing'],
])('time passes for %s', (_what, decide, session, ms, expected) => {
  expect(outcome(() => decide(session, { now: now + ms }))).toBe(expected)
})

test('what was to be delivered is gone from the read model once the delivery has ended', () => {
  const late = after(approved, decideDeliveryExpiry(approved, { now: now + deliveryTtlMs }))
  expect([approved.delivery_sealed, acknowledged.delivery_sealed, late.delivery_sealed]).toEqual([
    Buffer.from([1]),
    null,
    null,
  ])
})
