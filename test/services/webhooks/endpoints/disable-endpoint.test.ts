import { describe, expect, test } from 'vitest'
import { disableEndpoint, giveUpEndpoint } from '../../../../services/webhooks/endpoints/disable-endpoint.ts'
import type { EndpointsState } from '../../../../services/webhooks/endpoints/endpoint-state.ts'
import { refusal } from '../../organizations/given.ts'
import { disabled, endpoint, endpointId, now, organization, organizationId, suspended } from './given.ts'

const meta = { eventId: 'evt_1', time: now, organizationId, environment: 'live' }
const eventOf = (reason: string) => ({
  type: 'WebhookEndpointDisabled',
  data: { organization_id: organizationId, endpoint_id: endpointId, reason, disabled_at: now },
})

describe('disabling', () => {
  const command = { eventId: 'evt_1', now }
  const state = { organization, endpoint, active: 20 }

  test('disables an active endpoint by its owner, once', () => {
    expect(disableEndpoint(state, command)).toEqual([{ event: eventOf('manual'), meta }])
    expect(disableEndpoint({ ...state, endpoint: disabled }, command)).toEqual([])
  })

  test('is 404 without it, 403 when the organization is not active', () => {
    const codeOf = (other: Partial<EndpointsState>) =>
      refusal(() => disableEndpoint({ ...state, ...other }, command)).code
    expect(codeOf({ endpoint: undefined })).toBe('request.not_found')
    expect(codeOf({ organization: suspended })).toBe('auth.organization_inactive')
  })
})

describe('giving up', () => {
  const command = { reason: 'gone', seenAt: now - 5, eventId: 'evt_1', now } as const

  test('disables an active endpoint and says why', () => {
    expect(giveUpEndpoint(endpoint, command)).toEqual([{ event: eventOf('gone'), meta }])
    expect(giveUpEndpoint({ ...endpoint, target_since: now - 5 }, command)).toHaveLength(1)
  })

  test('goes by where the endpoint is: its name, secret and subscriptions may have changed since', () => {
    expect(giveUpEndpoint({ ...endpoint, updated_at: now - 1 }, command)).toHaveLength(1)
  })

  test('leaves alone what its owner has enabled or moved since, what is disabled and what is unknown', () => {
    expect(giveUpEndpoint({ ...endpoint, target_since: now - 4 }, command)).toEqual([])
    expect(giveUpEndpoint(disabled, command)).toEqual([])
    expect(giveUpEndpoint(undefined, command)).toEqual([])
  })
})
