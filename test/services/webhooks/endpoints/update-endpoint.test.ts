import { describe, expect, test } from 'vitest'
import type { EndpointRow } from '../../../../projections/webhooks/rows.ts'
import {
  completeEndpointChanges,
  type EndpointUpdate,
  updateEndpoint,
} from '../../../../services/webhooks/endpoints/update-endpoint.ts'
import { refusal } from '../../organizations/given.ts'
import {
  disabled,
  endpoint,
  endpointId,
  now,
  organization,
  organizationId,
  others,
  publicOnly,
  suspended,
} from './given.ts'

const ids = { organization_id: organizationId, endpoint_id: endpointId }

function update(changes: EndpointUpdate, { current = endpoint, rest = [] as EndpointRow[] } = {}) {
  const command = { environment: 'live', endpointId, changes, changeId: 'change', now } as const
  return updateEndpoint({ organization, endpoints: [...rest, current] }, command)
}

describe('updating', () => {
  test('makes one event for each thing that changes, and no other', () => {
    const decisions = update({
      name: 'Store',
      url: 'https://store.example/',
      event_types: ['gate.session.approved'],
      status: 'disabled',
    })
    expect(decisions.map(({ event }) => event)).toEqual([
      { type: 'WebhookEndpointRenamed', data: { ...ids, name: 'Store', renamed_at: now } },
      { type: 'WebhookEndpointMoved', data: { ...ids, url: 'https://store.example/', moved_at: now } },
      {
        type: 'WebhookEndpointSubscriptionsChanged',
        data: { ...ids, event_types: ['gate.session.approved'], changed_at: now },
      },
      { type: 'WebhookEndpointDisabled', data: { ...ids, reason: 'manual', disabled_at: now } },
    ])
    expect(new Set(decisions.map(({ meta }) => meta.eventId)).size).toBe(4)
    expect(decisions[0]?.meta).toMatchObject({ time: now, organizationId, environment: 'live' })
  })

  test('to what it is already makes none', () => {
    const { name, url, event_types, status } = endpoint
    expect(update({ name, url, event_types, status })).toEqual([])
    expect(update({ status: 'disabled' }, { current: { ...disabled, disabled_reason: 'gone' } })).toEqual([])
    expect(update({})).toEqual([])
  })

  test('enables a disabled endpoint, unless twenty are active', () => {
    const [decision] = update({ status: 'active' }, { current: disabled, rest: others(19) })
    expect(decision?.event).toEqual({ type: 'WebhookEndpointEnabled', data: { ...ids, enabled_at: now } })
    const full = { current: disabled, rest: others(20) }
    expect(refusal(() => update({ status: 'active' }, full)).code).toBe('request.conflict')
    // Nothing else of it needs a place among the twenty.
    expect(update({ name: 'Store' }, full)).toHaveLength(1)
    expect(update({ status: 'active' }, { rest: others(19) })).toEqual([])
  })

  test('is 404 for an endpoint of the other environment, 403 when the organization is not active', () => {
    const command = { environment: 'test', endpointId, changes: { name: 'A' }, changeId: 'c', now } as const
    const codeOf = (org: typeof organization, environment: 'live' | 'test') =>
      refusal(() => updateEndpoint({ organization: org, endpoints: [endpoint] }, { ...command, environment }))
        .code
    expect(codeOf(organization, 'test')).toBe('request.not_found')
    expect(codeOf(suspended, 'live')).toBe('auth.organization_inactive')
  })
})

test('changes are checked as a new endpoint is, those that are there', () => {
  expect(completeEndpointChanges({ name: ' A ' }, publicOnly)).toEqual({ name: 'A', status: undefined })
  const refused = { name: { name: '' }, url: { url: 'ftp://a.example' }, event_types: { eventTypes: [] } }
  for (const [name, changes] of Object.entries(refused)) {
    expect(refusal(() => completeEndpointChanges(changes, publicOnly)).details).toMatchObject({
      fields: [{ name }],
      parameter_set: 'webhook_endpoint_update',
    })
  }
})
