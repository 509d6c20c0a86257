import { describe, expect, test } from 'vitest'
import type { EndpointRow, FlaggedReason } from '../../../../projections/webhooks/tables.ts'
import {
  disableEndpoint,
  giveUpEndpoint,
  recoverEndpoint,
} from '../../../../services/webhooks/endpoints/disable-endpoint.ts'
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
  const state: EndpointsState = { organization, endpoint, active: 20, services: [] }

  test('disables an active endpoint by its owner, once', () => {
    expect(disableEndpoint(state, command)).toEqual([{ event: eventOf('manual'), meta }])
    expect(disableEndpoint({ ...state, endpoint: disabled }, command)).toEqual([])
  })

  test('is 404 without it, 403 when the organization is not active', () => {
    const codeOf = (other: Partial<EndpointsState>) =>
      refusal(() => disableEndpoint({ ...state, ...other }, command)).code
    expect(codeOf({ endpoint: undefined })).toBe('request.not_found')
    expect(codeOf({ organization: suspended })).toBe('auth.organization_inactive')
    expect(codeOf({ services: ['acme'] })).toBe('request.conflict')
  })
})

describe('giving up', () => {
  const command = { reason: 'gone', seenAt: now - 5, eventId: 'evt_1', now } as const
  const giveUp = (row: EndpointRow | undefined) => giveUpEndpoint({ endpoint: row, services: [] }, command)

  test('disables an active endpoint and says why', () => {
    expect(giveUp(endpoint)).toEqual([{ event: eventOf('gone'), meta }])
    expect(giveUp({ ...endpoint, target_since: now - 5 })).toHaveLength(1)
  })

  test('goes by where the endpoint is: its name, secret and subscriptions may have changed since', () => {
    expect(giveUp({ ...endpoint, updated_at: now - 1 })).toHaveLength(1)
  })

  test('leaves alone what its owner has enabled or moved since, what is disabled and what is unknown', () => {
    expect(giveUp({ ...endpoint, target_since: now - 4 })).toEqual([])
    expect(giveUp(disabled)).toEqual([])
    expect(giveUp(undefined)).toEqual([])
  })
})

describe('an endpoint that services are told of approvals at', () => {
  const seen = (reason: FlaggedReason, seenAt = now) => ({ reason, seenAt, eventId: 'evt_1', now })
  const given = (some: Partial<EndpointRow> = {}) => ({
    endpoint: { ...endpoint, ...some },
    services: ['acme'],
  })
  const typesOf = (decisions: { event: { type: string } }[]) => decisions.map(({ event }) => event.type)

  test('is flagged and stays active', () => {
    const [decision] = giveUpEndpoint(given(), seen('failing'))
    expect(decision?.event).toEqual({
      type: 'WebhookEndpointFlagged',
      data: { organization_id: organizationId, endpoint_id: endpointId, reason: 'failing', flagged_at: now },
    })
    // Or it could not be disabled for the same request once no service is told there.
    expect(decision?.meta.eventId).not.toBe('evt_1')
  })

  test('is flagged once, and again when it is worse', () => {
    expect(giveUpEndpoint(given({ flagged_reason: 'failing' }), seen('failing'))).toEqual([])
    expect(giveUpEndpoint(given({ flagged_reason: 'failing' }), seen('gone'))).toHaveLength(1)
    expect(giveUpEndpoint(given({ flagged_reason: 'gone' }), seen('failing'))).toEqual([])
  })

  test('is left alone when it was moved or enabled since, or is disabled', () => {
    expect(giveUpEndpoint(given({ target_since: now }), seen('gone', now - 1))).toEqual([])
    expect(giveUpEndpoint({ ...given(), endpoint: disabled }, seen('gone'))).toEqual([])
  })

  test('is disabled like any other once none is told there', () => {
    const alone = { ...given({ flagged_reason: 'gone' }), services: [] }
    expect(typesOf(giveUpEndpoint(alone, seen('failing')))).toEqual(['WebhookEndpointDisabled'])
  })

  test('has recovered when it was flagged', () => {
    const recover = (row: EndpointRow | undefined) => recoverEndpoint(row, { eventId: 'evt_1', now })
    expect(typesOf(recover({ ...endpoint, flagged_reason: 'gone' }))).toEqual(['WebhookEndpointRecovered'])
    expect(recover(endpoint)).toEqual([])
    expect(recover(undefined)).toEqual([])
  })
})
