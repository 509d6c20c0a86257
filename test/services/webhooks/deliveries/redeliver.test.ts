import { expect, test } from 'vitest'
import type {
  DeliveryRow,
  EndpointRow,
  WebhookEventRow,
} from '../../../../projections/webhooks/tables.ts'
import {
  decideRedelivery,
  type RedeliveryState,
} from '../../../../services/webhooks/deliveries/redeliver.ts'
import { refusal } from '../../organizations/fixtures.ts'
import { endpoint, organization, suspended } from '../endpoints/fixtures.ts'

const about = { organization_id: organization.id, environment: 'test' } as const
const eventId = `evt_${'2'.repeat(26)}`
const idOf = (digit: string) => `we_${digit.repeat(32)}`

const event: WebhookEventRow = {
  ...about,
  id: eventId,
  type: 'session.result.persisted',
  subject_type: 'session',
  subject_id: `sid_${'3'.repeat(26)}`,
  data: '{}',
  created_at: 1000,
}

const delivery = (digit: string, status: DeliveryRow['status']): DeliveryRow => ({
  ...about,
  id: `wdlv_${digit.repeat(32)}`,
  event_id: eventId,
  endpoint_id: idOf(digit),
  event_type: event.type,
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
  new Map(Object.entries(rows).map(([digit, status]) => [idOf(digit), { ...endpoint, status }]))

const state: RedeliveryState = {
  event,
  organization,
  deliveries: [delivery('a', 'succeeded'), delivery('b', 'failed'), delivery('c', 'skipped')],
  endpoints: endpoints({ a: 'active', b: 'active', c: 'active' }),
}

interface Asked extends Partial<RedeliveryState> {
  /** Endpoint that the command names. */
  to?: string
  requestId?: string
}

function redeliver({ to, requestId = `evt_${'9'.repeat(26)}`, ...given }: Asked = {}) {
  const endpointId = to && idOf(to)
  return decideRedelivery({ ...state, ...given }, { endpointId, requestId, now: 5000 })
}
const redeliveredEndpoints = (asked: Asked = {}) =>
  redeliver(asked).map(
    (decided) => 'endpoint_id' in decided.event.data && decided.event.data.endpoint_id,
  )

test('redelivery makes failed and skipped deliveries due again', () => {
  const decisions = redeliver()
  const ids = { ...about, event_id: eventId, requested_at: 5000 }
  expect(decisions.map((decided) => decided.event)).toEqual(
    ['b', 'c'].map((digit) => ({
      type: 'WebhookRedeliveryRequested',
      data: { ...ids, delivery_id: `wdlv_${digit.repeat(32)}`, endpoint_id: idOf(digit) },
    })),
  )
  const { organization_id: organizationId, environment } = about
  for (const { meta } of decisions)
    expect(meta).toMatchObject({ time: 5000, organizationId, environment })
})

test('each redelivery request has another event id, and a repeated one the same', () => {
  const ids = (requestId: string) => redeliver({ requestId }).map(({ meta }) => meta.eventId)
  expect(ids('evt_1')).toEqual(ids('evt_1'))
  expect(new Set([...ids('evt_1'), ...ids('evt_2')]).size).toBe(4)
})

test('redelivery to a named endpoint also restarts a successful delivery', () => {
  expect(redeliveredEndpoints({ to: 'a' })).toEqual([idOf('a')])
})

test('redelivery leaves pending deliveries alone if another endpoint failed', () => {
  const deliveries = [delivery('a', 'pending'), delivery('b', 'failed')]
  expect(redeliveredEndpoints({ deliveries })).toEqual([idOf('b')])
})

const pending = [delivery('a', 'pending')]
test.each<[string, Asked, string, string]>([
  ['an unknown event', { event: undefined }, 'not_found', 'no such event'],
  ['an endpoint that the event was not for', { to: 'd' }, 'not_found', 'not for this endpoint'],
  ['a pending delivery', { deliveries: pending }, 'conflict', 'still being delivered'],
  [
    'a pending delivery to the endpoint',
    { deliveries: pending, to: 'a' },
    'conflict',
    'still being delivered',
  ],
  ['an event without deliveries', { deliveries: [] }, 'conflict', 'have received'],
  [
    'an event that was delivered to every endpoint',
    { deliveries: [delivery('a', 'succeeded')] },
    'conflict',
    'have received',
  ],
  [
    'a disabled endpoint',
    { endpoints: endpoints({ b: 'active', c: 'disabled' }) },
    'conflict',
    idOf('c'),
  ],
  ['an unknown endpoint', { endpoints: endpoints({ b: 'active' }) }, 'conflict', idOf('c')],
  ['a suspended organization', { organization: suspended }, 'conflict', 'not active'],
  [
    'an approval',
    { event: { ...event, type: 'gate.session.approved' } },
    'conflict',
    'cannot be redelivered',
  ],
])('redelivery is rejected for %s', (_, asked, code, message) => {
  expect(refusal(() => redeliver(asked))).toMatchObject({
    code: `request.${code}`,
    message: expect.stringContaining(message),
  })
})
