import { isDeepStrictEqual } from 'node:util'
import { organizationFor } from '../../../infra/access/organization.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  decidedEvent,
  eventAbout,
  type NewEvent,
} from '../../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { derivedId, type EndpointId } from '../../../infra/ids.ts'
import { directType } from '../../../infra/wire/webhooks/direct-call.ts'
import { activeSecrets } from '../../../infra/wire/webhooks/signature.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { EndpointFlaggedReason, Environment } from '../../../schemas/events.ts'
import type { EndpointSpec, EndpointUpdate } from './schemas.ts'

export interface EndpointsState {
  organization: OrganizationRow | undefined
  endpoint: EndpointRow | undefined
  /** Number of active endpoints of the organization. */
  active: number
  /** Ids of the active Gate services whose approvals go to the endpoint. */
  services: readonly string[]
}

/** 404, the same for an id that is malformed, unknown, or of another environment or organization, to reveal nothing. */
export function noSuchEndpoint(): ApiError {
  return new ApiError('request.not_found', {
    message: 'No webhook endpoint with this id exists in this organization and environment.',
  })
}

export function endpointFor(endpoint: EndpointRow | undefined): EndpointRow {
  if (!endpoint) throw noSuchEndpoint()
  return endpoint
}

const maxActive = 20

function refuseManyActive({ active }: EndpointsState): void {
  if (active < maxActive) return
  throw new ApiError('request.conflict', {
    message: `An organization can have ${maxActive} active webhook endpoints; disable one first.`,
  })
}

function refuseWhileNeeded({ services }: Pick<EndpointsState, 'services'>): void {
  if (services.length === 0) return
  throw new ApiError('request.conflict', {
    message: `The webhook endpoint has to stay active and subscribed to ${directType} for ${services.join(', ')}; give each of these services another endpoint, or disable it, first.`,
  })
}

export interface CreateEndpoint {
  organizationId: string
  environment: Environment
  endpointId: EndpointId
  spec: EndpointSpec
  sealedSecret: Buffer
  now: number
}

/** 404 without the organization, 403 when it is not active, 409 at the limit. A repeated command makes no event. */
export function decideEndpointCreation(
  state: EndpointsState,
  command: CreateEndpoint,
): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const { organizationId, environment, endpointId, spec, sealedSecret, now } = command
  if (state.endpoint) return []
  refuseManyActive(state)
  const ids = { organization_id: organizationId, endpoint_id: endpointId, environment }
  const data = { ...ids, ...spec, signing_secret_sealed: sealedSecret, created_at: now }
  const about = {
    organizationId,
    environment,
    eventId: derivedId('evt', endpointId, 'created'),
    now,
  }
  return [decidedEvent({ type: 'WebhookEndpointCreated', data }, about)]
}

/**
 * Returns an event for each of name, URL, subscriptions and status that changes. 404 without the endpoint, 403 when its
 * organization is not active, 409 when it would be enabled above the limit, or disabled or unsubscribed from approvals
 * while services need them.
 */
export function decideEndpointUpdate(
  state: EndpointsState,
  { changes, changeId, now }: { changes: EndpointUpdate; changeId: string; now: number },
): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const endpoint = endpointFor(state.endpoint)
  if (changes.status === 'active' && endpoint.status !== 'active') refuseManyActive(state)
  if (endsApprovals(endpoint, changes)) refuseWhileNeeded(state)
  return changeEvents(endpoint, changes, now).map((event) =>
    eventAbout(endpoint, event, { eventId: derivedId('evt', changeId, event.type), now }),
  )
}

export function canEndApprovals({ status, event_types }: EndpointUpdate): boolean {
  return status === 'disabled' || event_types?.includes(directType) === false
}

function endsApprovals(endpoint: EndpointRow, { status, event_types }: EndpointUpdate): boolean {
  if (status === 'disabled' && endpoint.status === 'active') return true
  return event_types?.includes(directType) === false && endpoint.event_types.includes(directType)
}

const idsOf = ({ organization_id, id: endpoint_id }: EndpointRow) => ({
  organization_id,
  endpoint_id,
})

function changeEvents(endpoint: EndpointRow, changes: EndpointUpdate, now: number): DomainEvent[] {
  const ids = idsOf(endpoint)
  const { name = endpoint.name, url = endpoint.url, event_types = endpoint.event_types } = changes
  const events: DomainEvent[] = []
  if (name !== endpoint.name) {
    events.push({ type: 'WebhookEndpointRenamed', data: { ...ids, name, renamed_at: now } })
  }
  if (url !== endpoint.url) {
    events.push({ type: 'WebhookEndpointMoved', data: { ...ids, url, moved_at: now } })
  }
  if (!isDeepStrictEqual(event_types, endpoint.event_types)) {
    events.push({
      type: 'WebhookEndpointSubscriptionsChanged',
      data: { ...ids, event_types, changed_at: now },
    })
  }
  const { status = endpoint.status } = changes
  if (status === endpoint.status) return events
  if (status === 'active') {
    return [...events, { type: 'WebhookEndpointEnabled', data: { ...ids, enabled_at: now } }]
  }
  return [
    ...events,
    { type: 'WebhookEndpointDisabled', data: { ...ids, reason: 'manual', disabled_at: now } },
  ]
}

interface GiveUpEndpoint extends NewEvent {
  reason: EndpointFlaggedReason
  /** Start of the failed request, epoch milliseconds. */
  attemptedAt: number
}

/**
 * Disables an endpoint that deliveries do not reach, or only flags it while services need it for approvals, because
 * disabling it would stop all their signups. No event if it is already disabled or flagged for the same or a more
 * serious reason, or if its owner has enabled or moved it since the request.
 */
export function decideGiveUp(
  { endpoint, services }: Pick<EndpointsState, 'endpoint' | 'services'>,
  { reason, attemptedAt, eventId, now }: GiveUpEndpoint,
): DecidedEvent[] {
  if (endpoint?.status !== 'active' || endpoint.target_since > attemptedAt) return []
  if (services.length === 0) {
    const data = { ...idsOf(endpoint), reason, disabled_at: now }
    return [eventAbout(endpoint, { type: 'WebhookEndpointDisabled', data }, { eventId, now })]
  }
  if (endpoint.flagged_reason === 'gone' || endpoint.flagged_reason === reason) return []
  const data = { ...idsOf(endpoint), reason, flagged_at: now }
  // Another event id than for disabling: the same attempt may disable the endpoint later, when no service needs it.
  const ids = { eventId: derivedId('evt', eventId, 'flagged'), now }
  return [eventAbout(endpoint, { type: 'WebhookEndpointFlagged', data }, ids)]
}

/** Clears the flag of an endpoint. */
export function decideRecovery(
  endpoint: EndpointRow | undefined,
  { eventId, now }: NewEvent,
): DecidedEvent[] {
  if (!endpoint || endpoint.flagged_reason === null) return []
  const data = { ...idsOf(endpoint), recovered_at: now }
  return [eventAbout(endpoint, { type: 'WebhookEndpointRecovered', data }, { eventId, now })]
}

/** Time for which the previous secret still signs after a rotation. */
const overlapMs = 24 * 60 * 60 * 1000

const maxLiveSecrets = 3

/**
 * Adds a signing secret; the previous one also signs for another 24 hours. Disabled endpoints can be rotated too, so
 * that a leaked secret is replaced before the endpoint is enabled. 404 without the endpoint, 403 when its organization
 * is not active, 409 when three secrets sign. A repeated command, `isRepeat`, makes no event.
 */
export function decideSecretRotation(
  state: EndpointsState & { isRepeat: boolean },
  { sealedSecret, eventId, now }: NewEvent & { sealedSecret: Buffer },
): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const endpoint = endpointFor(state.endpoint)
  if (state.isRepeat) return []
  if (activeSecrets(endpoint.secrets, now).length >= maxLiveSecrets) {
    const message = `${maxLiveSecrets} secrets sign the deliveries of this endpoint; rotate again when the oldest has ended.`
    throw new ApiError('request.conflict', { message })
  }
  const times = { rotated_at: now, previous_expires_at: now + overlapMs }
  const data = { ...idsOf(endpoint), signing_secret_sealed: sealedSecret, ...times }
  return [eventAbout(endpoint, { type: 'WebhookEndpointSecretRotated', data }, { eventId, now })]
}
