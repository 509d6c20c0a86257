import { isDeepStrictEqual } from 'node:util'
import type { DomainEvent } from '../../../infra/event-store/codec.ts'
import { type DecidedEvent, decidedEvent } from '../../../infra/event-store/decide.ts'
import { derivedId } from '../../../infra/ids.ts'
import type { AddressRules } from '../../../infra/safe-http/addresses.ts'
import { directType } from '../../../infra/wire/webhooks/direct-call.ts'
import { organizationFor } from '../../../projections/organizations/queries.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import { checkedEndpointName, checkedEventTypes, checkedUrl } from './checked-fields.ts'
import type { EndpointSpec } from './create-endpoint.ts'
import { type EndpointsState, endpointFor, refuseManyActive, refuseNeeded } from './endpoint-state.ts'

/** What can be changed of an endpoint; undefined = as it is. */
export interface EndpointChanges {
  name?: string | undefined
  url?: string | undefined
  eventTypes?: readonly string[] | undefined
  status?: EndpointRow['status'] | undefined
}

/** Checked changes, normalised. */
export type EndpointUpdate = Partial<EndpointSpec> & Pick<EndpointChanges, 'status'>

export interface UpdateEndpoint {
  changes: EndpointUpdate
  /** Of this one update: its events get their ids from it. */
  changeId: string
  /** Epoch milliseconds. */
  now: number
}

/** The changes as they are decided about. 422 naming the field that does not fit. */
export function completeEndpointChanges(
  { name, url, eventTypes, status }: EndpointChanges,
  rules: AddressRules,
): EndpointUpdate {
  const parameterSet = 'webhook_endpoint_update'
  return {
    ...(name !== undefined && { name: checkedEndpointName(name, parameterSet) }),
    ...(url !== undefined && { url: checkedUrl(url, { rules, parameterSet }) }),
    ...(eventTypes && { event_types: checkedEventTypes(eventTypes, parameterSet) }),
    status,
  }
}

/**
 * Changes the endpoint's name, URL, subscriptions and status, one event for each that changes. 404 when there is no
 * such endpoint, 403 when its organization is not active, 409 when it is enabled and there are as many as there can be,
 * and when it is disabled or unsubscribed from approvals while services are told of them there.
 */
export function updateEndpoint(state: EndpointsState, command: UpdateEndpoint): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const endpoint = endpointFor(state.endpoint)
  const { changes, changeId, now } = command
  const { organization_id: organizationId, environment } = endpoint
  if (changes.status === 'active' && endpoint.status !== 'active') refuseManyActive(state)
  if (endsApprovals(endpoint, changes)) refuseNeeded(state)
  const events = [...described(endpoint, command), ...switched(endpoint, command)]
  return events.map((event) => {
    const eventId = derivedId('evt', changeId, event.type)
    return decidedEvent(event, { organizationId, environment, eventId, now })
  })
}

/** Whether the endpoint may be told of no approvals afterwards, whatever it is told of now. */
export function mayEndApprovals({ status, event_types }: EndpointUpdate): boolean {
  return status === 'disabled' || event_types?.includes(directType) === false
}

function endsApprovals(endpoint: EndpointRow, { status, event_types }: EndpointUpdate): boolean {
  if (status === 'disabled' && endpoint.status === 'active') return true
  return event_types?.includes(directType) === false && endpoint.event_types.includes(directType)
}

const about = ({ organization_id, id: endpoint_id }: EndpointRow) => ({ organization_id, endpoint_id })

function described(endpoint: EndpointRow, { changes, now }: UpdateEndpoint): DomainEvent[] {
  const { name = endpoint.name, url = endpoint.url, event_types = endpoint.event_types } = changes
  const events: DomainEvent[] = []
  if (name !== endpoint.name) {
    events.push({ type: 'WebhookEndpointRenamed', data: { ...about(endpoint), name, renamed_at: now } })
  }
  if (url !== endpoint.url) {
    events.push({ type: 'WebhookEndpointMoved', data: { ...about(endpoint), url, moved_at: now } })
  }
  if (!isDeepStrictEqual(event_types, endpoint.event_types)) {
    const data = { ...about(endpoint), event_types, changed_at: now }
    events.push({ type: 'WebhookEndpointSubscriptionsChanged', data })
  }
  return events
}

function switched(endpoint: EndpointRow, { changes, now }: UpdateEndpoint): DomainEvent[] {
  const { status = endpoint.status } = changes
  if (status === endpoint.status) return []
  if (status === 'active') {
    return [{ type: 'WebhookEndpointEnabled', data: { ...about(endpoint), enabled_at: now } }]
  }
  const data = { ...about(endpoint), reason: 'manual', disabled_at: now } as const
  return [{ type: 'WebhookEndpointDisabled', data }]
}
