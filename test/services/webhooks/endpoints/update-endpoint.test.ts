import { describe, expect, test } from 'vitest'
import { subscribableTypes } from '../../../../infra/wire/webhooks/events.ts'
import type { EndpointsState } from '../../../../services/webhooks/endpoints/endpoint-state.ts'
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
  publicOnly,
  suspended,
} from './given.ts'

const none: readonly string[] = []
const ids = { organization_id: organizationId, endpoint_id: endpointId }

function update(changes: EndpointUpdate, { current = endpoint, active = 1, services = none } = {}) {
  const state = { organization, endpoint: current, active, services }
  return updateEndpoint(state, { changes, changeId: 'change', now })
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
    const [decision] = update({ status: 'active' }, { current: disabled, active: 19 })
    expect(decision?.event).toEqual({ type: 'WebhookEndpointEnabled', data: { ...ids, enabled_at: now } })
    const full = { current: disabled, active: 20 }
    expect(refusal(() => update({ status: 'active' }, full)).code).toBe('request.conflict')
    // Nothing else of it needs a place among the twenty.
    expect(update({ name: 'Store' }, full)).toHaveLength(1)
    expect(update({ status: 'active' }, { active: 20 })).toEqual([])
  })

  test('is 409 where services would not be told of approvals any more, and only there', () => {
    const told = { ...endpoint, event_types: [...subscribableTypes] }
    const services = ['acme', 'shop']
    const ending: EndpointUpdate[] = [{ status: 'disabled' }, { event_types: ['session.result.persisted'] }]
    for (const changes of ending) {
      const refused = refusal(() => update(changes, { current: told, services }))
      expect(refused.code).toBe('request.conflict')
      expect(refused.message).toContain('acme, shop')
    }
    const kept: EndpointUpdate[] = [
      { name: 'Store' },
      { url: 'https://store.example/' },
      { event_types: ['gate.session.approved'] },
      { status: 'active' },
    ]
    for (const changes of kept) expect(() => update(changes, { current: told, services })).not.toThrow()
    const ended = { ...told, status: 'disabled', disabled_reason: 'manual' } as const
    expect(update({ status: 'disabled' }, { current: ended, services })).toEqual([])
  })

  test('is 404 without the endpoint, 403 when the organization is not active', () => {
    const state = { organization, endpoint, active: 1, services: none }
    const codeOf = (other: Partial<EndpointsState>) =>
      refusal(() => updateEndpoint({ ...state, ...other }, { changes: { name: 'A' }, changeId: 'c', now }))
        .code
    expect(codeOf({ endpoint: undefined })).toBe('request.not_found')
    expect(codeOf({ organization: suspended })).toBe('auth.organization_inactive')
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
