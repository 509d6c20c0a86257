import { describe, expect, test } from 'vitest'
import { decideDeliveryReplacement } from '../../../../services/gate/approval/decide-redelivery.ts'
import { now, startedSignup } from '../../../support/gate-rows.ts'

const lost = Buffer.from('lost')
const expiresAt = now + 1000
const waiting = (changes: Parameters<typeof startedSignup>[0] = {}) =>
  startedSignup({
    status: 'approved',
    delivery: 'waiting',
    delivery_sealed: Buffer.from('lost'),
    delivery_expires_at: expiresAt,
    ...changes,
  })

const credentials = {
  delivery_sealed: Buffer.from('sealed'),
  delivery_expires_at: now + 5000,
  ack_token_hash: 'ack',
  agent_token_hash: 'agent',
  agent_token_expires_at: now + 2,
  approved_at: now,
}
const decide = (session: Parameters<typeof decideDeliveryReplacement>[0]) =>
  decideDeliveryReplacement(session, { lost, credentials })

describe('replacing what nobody can open', () => {
  test('says all that is new, and nothing of its time, which stays', () => {
    const [decision, ...others] = decide(waiting())
    expect(others).toEqual([])
    expect(decision?.event).toEqual({
      type: 'GateDeliveryReplaced',
      data: {
        gate_session_id: waiting().id,
        gate_account_id: waiting().gate_account_id,
        delivery_sealed: credentials.delivery_sealed,
        ack_token_hash: 'ack',
        agent_token_hash: 'agent',
        agent_token_expires_at: now + 2,
        replaced_at: now,
      },
    })
  })

  test.each([
    ['unknown', undefined],
    ['not approved', startedSignup()],
    ['replaced before', waiting({ delivery_sealed: Buffer.from('another') })],
    ['acknowledged', waiting({ delivery: 'acknowledged', delivery_sealed: null })],
    ['past its time', waiting({ delivery_expires_at: now })],
  ])('%s: nothing happens', (_, session) => {
    expect(decide(session)).toEqual([])
  })
})
