import { expect, test } from 'vitest'
import type { GateSessionRow } from '../../../../projections/gate/tables.ts'
import { decideClaim } from '../../../../services/gate/claim/decide.ts'
import {
  claimingSignup,
  eventsOf,
  minute,
  now as opened,
  outcome,
  pendingSignup,
  sessionAfter,
  startedSignup,
} from '../fixtures.ts'

const now = opened + 5 * minute
const claiming = claimingSignup()
const told = (session: GateSessionRow, isCorrectCode: boolean) =>
  decideClaim({ session, endpointId: 'we_1', isCorrectCode }, { now })

test('the correct code starts the approval, and has no effect the second time', () => {
  const decisions = told(claiming, true)
  const { id: gate_session_id, gate_account_id } = claiming
  const data = { gate_session_id, gate_account_id, webhook_endpoint_id: 'we_1', claimed_at: now }
  expect(eventsOf(decisions)).toEqual([{ type: 'GateSessionClaimed', data }])
  const claimed = sessionAfter(claiming, decisions)
  expect(claimed).toMatchObject({ status: 'pending', claim: 'claimed', approval_started_at: now })
  expect(told(claimed, true)).toEqual([])
  expect(told({ ...claimed, status: 'approved' }, true)).toEqual([])
})

test('four wrong codes are recorded, and the fifth rejects the signup', () => {
  let session = claiming
  const said = Array.from({ length: 5 }, () => {
    const decisions = told(session, false)
    session = sessionAfter(session, decisions)
    return outcome(() => decisions)
  })
  expect(said).toEqual([
    ...Array(4).fill('GateSessionClaimFailed'),
    'GateSessionClaimFailed GateSessionRejected',
  ])
  expect(session).toMatchObject({ rejection: 'claim_failed', claim_failures: 5 })
  expect(outcome(() => told(session, true))).toBe('gate.session_already_resolved')
})

test.each<[string, GateSessionRow, string]>([
  ['before a person has approved', pendingSignup(), 'gate.claim_code_invalid'],
  ["after the session's time is over", claimingSignup({ expires_at: now }), 'gate.session_expired'],
  ['after it has expired', claimingSignup({ status: 'expired' }), 'gate.session_expired'],
  [
    'after it was declined',
    claimingSignup({ status: 'rejected' }),
    'gate.session_already_resolved',
  ],
  ['for a signup that needs no claim', startedSignup(), 'nothing'],
])('a code sent %s', (_name, session, expected) => {
  expect(outcome(() => told(session, true))).toBe(expected)
})
