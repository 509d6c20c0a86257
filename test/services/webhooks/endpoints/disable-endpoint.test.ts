import { describe, expect, test } from 'vitest'
import { disableEndpoint, giveUpEndpoint } from '../../../../services/webhooks/endpoints/disable-endpoint.ts'
import { refusal } from '../../organizations/given.ts'
import { disabled, endpoint, endpointId, now, organization, organizationId, suspended } from './given.ts'

const meta = { eventId: 'evt_1', time: now, organizationId, environment: 'live' }
const eventOf = (reason: string) => ({
  type: 'WebhookEndpointDisabled',
  data: { organization_id: organizationId, endpoint_id: endpointId, reason, disabled_at: now },
})

describe('disabling', () => {
  const command = { environment: 'live', endpointId, eventId: 'evt_1', now } as const

  test('disables an active endpoint by its owner, once', () => {
    expect(disableEndpoint({ organization, endpoints: [endpoint] }, command)).toEqual([
      { event: eventOf('manual'), meta },
    ])
    expect(disableEndpoint({ organization, endpoints: [disabled] }, command)).toEqual([])
  })

  test('is 404 without it, 403 when the organization is not active', () => {
    const codeOf = (state: Parameters<typeof disableEndpoint>[0], environment: 'live' | 'test' = 'live') =>
      refusal(() => disableEndpoint(state, { ...command, environment })).code
    expect(codeOf({ organization, endpoints: [] })).toBe('request.not_found')
    expect(codeOf({ organization, endpoints: [endpoint] }, 'test')).toBe('request.not_found')
    expect(codeOf({ organization: suspended, endpoints: [endpoint] })).toBe('auth.organization_inactive')
  })
})

describe('giving up', () => {
  const command = { reason: 'gone', seenAt: now - 5, eventId: 'evt_1', now } as const

  test('disables an active endpoint and says why', () => {
    expect(giveUpEndpoint(endpoint, command)).toEqual([{ event: eventOf('gone'), meta }])
    expect(giveUpEndpoint({ ...endpoint, updated_at: now - 5 }, command)).toHaveLength(1)
  })

  test('leaves alone what its owner has changed since, what is disabled and what is unknown', () => {
    expect(giveUpEndpoint({ ...endpoint, updated_at: now - 4 }, command)).toEqual([])
    expect(giveUpEndpoint(disabled, command)).toEqual([])
    expect(giveUpEndpoint(undefined, command)).toEqual([])
  })
})
