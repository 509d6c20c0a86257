import { expect, test } from 'vitest'
import { asId } from '../../../../infra/ids.ts'
import { decideTest, type TestState } from '../../../../services/webhooks/endpoints/send-test.ts'
import { refusal } from '../../organizations/fixtures.ts'
import {
  disabled,
  endpoint,
  endpointId,
  now,
  organization,
  organizationId,
  suspended,
} from './fixtures.ts'

const eventId = asId('evt', `evt_${'3'.repeat(26)}`)
const state: TestState = { organization, endpoint, recentTests: [], isRepeat: false }
const sendTest = (given: Partial<TestState> = {}) =>
  decideTest({ ...state, ...given }, { eventId, now })
const ten = (ago: number) => [...Array<number>(9).fill(now - 1), now - ago]

test('a test raises an event for its endpoint only', () => {
  const data = {
    event_id: eventId,
    organization_id: organizationId,
    environment: 'live',
    type: 'webhook.test',
    subject_type: 'webhook_endpoint',
    subject_id: endpointId,
    data: `{"object":"webhook_test","endpoint":{"id":"${endpointId}"}}`,
    created_at: now,
    endpoint_ids: [endpointId],
    route: 'queued',
  }
  const meta = { eventId, time: now, organizationId, environment: 'live' }
  expect(sendTest()).toEqual([{ event: { type: 'WebhookEventRaised', data }, meta }])
})

test.each([
  [59_999, '1'],
  [59_000, '1'],
  [58_999, '2'],
  [2, '60'],
])(
  'an eleventh test within a minute waits until the first, %i ms ago, is a minute old: %s s',
  (ago, seconds) => {
    const { code, headers } = refusal(() => sendTest({ recentTests: ten(ago) }))
    expect([code, headers]).toEqual(['rate_limit.exceeded', { 'retry-after': seconds }])
  },
)

test('a tenth test, and an eleventh after a minute, is sent', () => {
  expect(sendTest({ recentTests: ten(1).slice(1) })).toHaveLength(1)
  expect(sendTest({ recentTests: ten(60_000) })).toHaveLength(1)
})

test('a repeated test has no effect, whatever happened to the endpoint since', () => {
  expect(sendTest({ isRepeat: true, recentTests: ten(5), endpoint: disabled })).toEqual([])
})

test.each<[string, Partial<TestState>]>([
  ['request.conflict', { endpoint: disabled }],
  ['request.not_found', { endpoint: undefined }],
  ['auth.organization_inactive', { organization: suspended }],
])('%s', (code, given) => {
  expect(refusal(() => sendTest(given)).code).toBe(code)
})
