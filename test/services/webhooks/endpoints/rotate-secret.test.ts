import { expect, test } from 'vitest'
import type { SigningSecretRow } from '../../../../projections/webhooks/tables.ts'
import {
  overlapMs,
  type RotateState,
  rotateSecret,
} from '../../../../services/webhooks/endpoints/rotate-secret.ts'
import { refusal } from '../../organizations/given.ts'
import { disabled, endpoint, endpointId, now, organization, organizationId, suspended } from './given.ts'

const command = {
  sealedSecret: Buffer.from('sealed'),
  eventId: 'evt_1',
  now,
}
const state: RotateState = { organization, endpoint, active: 1, services: [], has: false }

/** An endpoint whose secrets end then; the first has no end. */
function withSecrets(...ends: number[]) {
  const secrets: SigningSecretRow[] = [null, ...ends].map((expires_at) => ({
    sealed: Buffer.from(String(expires_at)),
    created_at: 1,
    expires_at,
  }))
  return { ...state, endpoint: { ...endpoint, secrets } }
}

test('a new secret signs from now on, the one before for 24 more hours', () => {
  expect(rotateSecret(state, command)).toEqual([
    {
      event: {
        type: 'WebhookEndpointSecretRotated',
        data: {
          organization_id: organizationId,
          endpoint_id: endpointId,
          signing_secret_sealed: Buffer.from('sealed'),
          rotated_at: now,
          previous_expires_at: now + overlapMs,
        },
      },
      meta: { eventId: 'evt_1', time: now, organizationId, environment: 'live' },
    },
  ])
  expect(overlapMs).toBe(24 * 60 * 60 * 1000)
})

test('at most three secrets sign; what has ended does not count', () => {
  expect(rotateSecret(withSecrets(now + 1), command)).toHaveLength(1)
  expect(rotateSecret(withSecrets(now + 1, now), command)).toHaveLength(1)
  expect(refusal(() => rotateSecret(withSecrets(now + 2, now + 1), command)).code).toBe('request.conflict')
})

test('again it does nothing, also when three secrets sign', () => {
  expect(rotateSecret({ ...withSecrets(now + 2, now + 1), has: true }, command)).toEqual([])
})

test('a disabled endpoint gets a new secret, so that a leaked one is gone before it is enabled', () => {
  expect(rotateSecret({ ...state, endpoint: disabled }, command)).toHaveLength(1)
})

test('it is 404 without the endpoint, 403 when the organization is not active', () => {
  expect(refusal(() => rotateSecret({ ...state, endpoint: undefined }, command)).code).toBe(
    'request.not_found',
  )
  expect(refusal(() => rotateSecret({ ...state, organization: suspended }, command)).code).toBe(
    'auth.organization_inactive',
  )
})
