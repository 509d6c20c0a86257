import { expect, test } from 'vitest'
import { asId } from '../../../../infra/ids.ts'
import { decideTest, type TestState } from '../../../../services/webhooks/endpoints/send-test.ts'
import { refusal } from '../../organizations/given.ts'
import {
  disabled,
  endpoint,
  endpointId,
  now,
  organization,
  organizationId,
  suspended,
} from './given.ts'

const eventId = asId('evt', `evt_${'3'.repeat(26)}`)
const command = { eventId, now }
const state: TestState = { organization, endpoint, recent: [], exists: false }
const ten = (ago: number) => [...Array<number>(9).fill(now - 1), now - ago]

test('it raises an event for the one endpoint', () => {
  expect(decideTest(state, command)).toEqual([
    {
      event: {
        type: 'WebhookEventRaised',
        data: {
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
        },
      },
      meta: { eventId, time: now, organizationId, environment: 'live' },
    },
  ])
})

test.each([
  [59_999, '1'],
  [59_000, '1'],
  [58_999, '2'],
  [2, '60'],
])(
  'an eleventh within a minute waits until the first is older: %i ms ago, %s s',
  (ago, seconds) => {
    const { code, headers } = refusal(() => decideTest({ ...state, recent: ten(ago) }, command))
    expect([code, headers]).toEqual(['rate_limit.exceeded', { 'retry-after': seconds }])
  },
)

test('a tenth, and an eleventh after a minute, is sent', () => {
  expect(decideTest({ ...state, recent: ten(1).slice(1) }, command)).toHaveLength(1)
  expect(decideTest({ ...state, recent: ten(60_000) }, command)).toHaveLength(1)
})

test('again it does nothing, whatever became of the endpoint since', () => {
  const repeated = { ...state, exists: true, recent: ten(5) }
  expect(decideTest(repeated, command)).toEqual([])
  expect(decideTest({ ...repeated, endpoint: disabled }, command)).toEqual([])
})

test('a disabled endpoint is not tested; without one it is 404, without an active organization 403', () => {
  const codeOf = (given: Partial<TestState>) =>
    refusal(() => decideTest({ ...state, ...given }, command)).code
  expect(codeOf({ endpoint: disabled })).toBe('request.conflict')
  expect(codeOf({ endpoint: undefined })).toBe('request.not_found')
  expect(codeOf({ organization: suspended })).toBe('auth.organization_inactive')
})
