import { expect, test } from 'vitest'
import type { DeliveryRow, EndpointRow } from '../../../../projections/webhooks/tables.ts'
import {
  decideResend,
  type ResendState,
  selectForRedelivery,
} from '../../../../services/webhooks/deliveries/resend.ts'
import { refusal } from '../../organizations/fixtures.ts'
import { endpoint, organization, suspended } from '../endpoints/fixtures.ts'

const about = { organization_id: organization.id, environment: 'test' } as const
const eventId = `evt_${'2'.repeat(26)}`
const idOf = (digit: string) => `we_${digit.repeat(32)}`

const delivery = (digit: string, status: DeliveryRow['status']): DeliveryRow => ({
  ...about,
  id: `wdlv_${digit.repeat(32)}`,
  event_id: eventId,
  endpoint_id: idOf(digit),
  event_type: 'session.result.persisted',
  status,
  attempts: 10,
  attempts_in_round: 10,
  next_attempt_at: null,
  response_status: 500,
  response_body: null,
  error: null,
  created_at: 1000,
  updated_at: 2000,
})

const endpoints = (rows: Record<string, EndpointRow['status']>) =>
  Object.entries(rows).map(([digit, status]) => ({ ...endpoint, id: idOf(digit), status }))

const deliveries = [delivery('a', 'succeeded'), delivery('b', 'failed'), delivery('c', 'skipped')]
const pending = [delivery('a', 'pending')]
const state: ResendState = {
  organization,
  deliveries,
  endpoints: endpoints({ a: 'active', b: 'active', c: 'active' }),
}

const requestId = `evt_${'9'.repeat(26)}`
const resend = (given: Partial<ResendState> = {}, id = requestId) =>
  decideResend({ ...state, ...given }, { requestId: id, now: 5000 })

test('finished deliveries are due again', () => {
  const decisions = resend({ deliveries: [...deliveries, delivery('d', 'pending')] })
  const ids = { ...about, event_id: eventId, requested_at: 5000 }
  expect(decisions.map((decided) => decided.event)).toEqual(
    ['a', 'b', 'c'].map((digit) => ({
      type: 'WebhookRedeliveryRequested',
      data: { ...ids, delivery_id: `wdlv_${digit.repeat(32)}`, endpoint_id: idOf(digit) },
    })),
  )
  const { organization_id: organizationId, environment } = about
  for (const { meta } of decisions)
    expect(meta).toMatchObject({ time: 5000, organizationId, environment })
})

test('each request has other event ids, and a repeated one the same', () => {
  const ids = (id: string) => resend({}, id).map(({ meta }) => meta.eventId)
  expect(ids('evt_1')).toEqual(ids('evt_1'))
  expect(new Set([...ids('evt_1'), ...ids('evt_2')]).size).toBe(6)
})

test.each<[string, Partial<ResendState>, string]>([
  ['a disabled endpoint', { endpoints: endpoints({ b: 'active', c: 'disabled' }) }, idOf('c')],
  [
    'a disabled endpoint without deliveries',
    { endpoints: endpoints({ c: 'disabled' }), deliveries: [] },
    idOf('c'),
  ],
  ['a suspended organization', { organization: suspended }, 'not active'],
  [
    'an approval',
    { deliveries: [{ ...delivery('b', 'failed'), event_type: 'gate.session.approved' }] },
    'cannot be redelivered',
  ],
])('nothing is sent again for %s', (_, given, message) => {
  expect(refusal(() => resend(given))).toMatchObject({
    code: 'request.conflict',
    message: expect.stringContaining(message),
  })
})

const selected = (rows: DeliveryRow[], digit?: string) =>
  selectForRedelivery(rows, digit && idOf(digit)).map(({ endpoint_id }) => endpoint_id)

test('an event is redelivered where it failed or was skipped, or to a named endpoint that has received it', () => {
  expect(selected(deliveries)).toEqual([idOf('b'), idOf('c')])
  expect(selected([...pending, delivery('b', 'failed')])).toEqual([idOf('b')])
  expect(selected(deliveries, 'a')).toEqual([idOf('a')])
})

test.each<[string, DeliveryRow[], string | undefined, string, string]>([
  ['an endpoint that it was not for', deliveries, 'd', 'not_found', 'not for this endpoint'],
  ['an endpoint where it is pending', pending, 'a', 'conflict', 'still being delivered'],
  ['any endpoint while it is pending', pending, undefined, 'conflict', 'still being delivered'],
  ['any endpoint without deliveries', [], undefined, 'conflict', 'have received'],
  [
    'any endpoint if all have received it',
    [delivery('a', 'succeeded')],
    undefined,
    'conflict',
    'have received',
  ],
])('an event is not redelivered to %s', (_, rows, digit, code, message) => {
  expect(refusal(() => selected(rows, digit))).toMatchObject({
    code: `request.${code}`,
    message: expect.stringContaining(message),
  })
})
