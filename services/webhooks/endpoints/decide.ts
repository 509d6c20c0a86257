import { isDeepStrictEqual } from 'node:util'
import { requireUsableOrganization } from '../../../infra/access/organization.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  decidedEvent,
  type EventIdAndTime,
  eventAbout,
} from '../../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { derivedId, type EndpointId } from '../../../infra/ids.ts'
import { directEventType } from '../../../infra/wire/webhooks/direct-call.ts'
import { activeSecrets } from '../../../infra/wire/webhooks/signature.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { EndpointFlaggedReason, Environment } from '../../../schemas/events.ts'
import type { EndpointSpec, EndpointUpdate } from './schemas.ts'

export interface EndpointsState {
  organization: OrganizationRow | undefined
  endpoint: EndpointRow | undefined
  /** Number of active endpoints of the organization. */
  activeCount: number
  /** Ids of the active Gate services whose approvals go to the endpoint. */
  services: readonly string[]
}

/** The same 404 for an id that is malformed, unknown, or of another environment or organization. */
export function noSuchEndpoint(): ApiError {
  return new ApiError('request.not_found', {
    message: 'No webhook endpoint with this id exists in this organization and environment.',
  })
}

/** Throws 404 without an endpoint. */
export function requireEndpoint(endpoint: EndpointRow | undefined): EndpointRow {
  if (!endpoint) throw noSuchEndpoint()
  return endpoint
}

const maxActive = 20

function refuseTooManyActive({ activeCount }: EndpointsState): void {
  if (activeCount < maxActive) return
  throw new ApiError('request.conflict', {
    message: `An organization can have ${maxActive} active webhook endpoints; disable one first.`,
  })
}

function refuseIfServicesUseIt({ services }: Pick<EndpointsState, 'services'>): void {
  if (services.length === 0) return
  throw new ApiError('request.conflict', {
    message: `Gate services use this webhook endpoint for ${directEventType}: ${services.join(', ')}. First give each of them another endpoint, or disable it.`,
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

/** Throws 404 if the organization does not exist, 403 if it is not active, and 409 at the limit. */
export function decideEndpointCreation(
  state: EndpointsState,
  command: CreateEndpoint,
): DecidedEvent[] {
  requireUsableOrganization(state.organization, 'key')
  const { organizationId, environment, endpointId, spec, sealedSecret, now } = command
  if (state.endpoint) return []
  refuseTooManyActive(state)
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
 * Returns one event each for a changed name, URL, subscriptions (with the filter) and status. Throws 404 if the endpoint
 * does not exist, 403 if its organization is not active, and 409 if enabling it would exceed the limit, or if Gate
 * services need it and it would be disabled or unsubscribed from approvals.
 */
export function decideEndpointUpdate(
  state: EndpointsState,
  { changes, changeId, now }: { changes: EndpointUpdate; changeId: string; now: number },
): DecidedEvent[] {
  requireUsableOrganization(state.organization, 'key')
  const endpoint = requireEndpoint(state.endpoint)
  if (changes.status === 'active' && endpoint.status !== 'active') refuseTooManyActive(state)
  if (endsApprovals(endpoint, changes)) refuseIfServicesUseIt(state)
  return changeEvents(endpoint, changes, now).map((event) =>
    eventAbout(endpoint, event, { eventId: derivedId('evt', changeId, event.type), now }),
  )
}

/** Returns true if the update could stop the delivery of approvals, depending on the endpoint. */
export function canEndApprovals({ status, event_types }: EndpointUpdate): boolean {
  return status === 'disabled' || event_types?.includes(directEventType) === false
}

function endsApprovals(endpoint: EndpointRow, { status, event_types }: EndpointUpdate): boolean {
  if (status === 'disabled' && endpoint.status === 'active') return true
  return (
    event_types?.includes(directEventType) === false &&
    endpoint.event_types.includes(directEventType)
  )
}

const idsOf = ({ organization_id, id: endpoint_id }: EndpointRow) => ({
  organization_id,
  endpoint_id,
})

function changeEvents(endpoint: EndpointRow, changes: EndpointUpdate, now: number): DomainEvent[] {
  const ids = idsOf(endpoint)
  const { name = endpoint.name, url = endpoint.url } = changes
  const { event_types = endpoint.event_types, filter = endpoint.filter } = changes
  const events: DomainEvent[] = []
  if (name !== endpoint.name) {
    events.push({ type: 'WebhookEndpointRenamed', data: { ...ids, name, renamed_at: now } })
  }
  if (url !== endpoint.url) {
    events.push({ type: 'WebhookEndpointMoved', data: { ...ids, url, moved_at: now } })
  }
  if (!isDeepStrictEqual([event_types, filter], [endpoint.event_types, endpoint.filter])) {
    events.push({
      type: 'WebhookEndpointSubscriptionsChanged',
      data: { ...ids, event_types, filter, changed_at: now },
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

interface DisableOrFlag extends EventIdAndTime {
  reason: EndpointFlaggedReason
  /** Start of the failed request, epoch milliseconds. */
  attemptedAt: number
}

/**
 * Disables a failing endpoint. Only flags it while Gate services need it for approvals, because disabling it would stop
 * their signups. Returns no event if it is already disabled or flagged for the same or a more serious reason, or if its
 * owner has enabled or moved it since the failed request.
 */
export function decideDisableOrFlag(
  { endpoint, services }: Pick<EndpointsState, 'endpoint' | 'services'>,
  { reason, attemptedAt, eventId, now }: DisableOrFlag,
): DecidedEvent[] {
  if (endpoint?.status !== 'active' || endpoint.target_since > attemptedAt) return []
  if (services.length === 0) {
    const data = { ...idsOf(endpoint), reason, disabled_at: now }
    return [eventAbout(endpoint, { type: 'WebhookEndpointDisabled', data }, { eventId, now })]
  }
  if (endpoint.flagged_reason === 'gone' || endpoint.flagged_reason === reason) return []
  const data = { ...idsOf(endpoint), reason, flagged_at: now }
  // Differs from the event id for disabling, because the same attempt can still disable the endpoint later.
  const ids = { eventId: derivedId('evt', eventId, 'flagged'), now }
  return [eventAbout(endpoint, { type: 'WebhookEndpointFlagged', data }, ids)]
}

/** Clears the endpoint's flag. Returns no event if it is not flagged. */
export function decideRecovery(
  endpoint: EndpointRow | undefined,
  { eventId, now }: EventIdAndTime,
): DecidedEvent[] {
  if (!endpoint || endpoint.flagged_reason === null) return []
  const data = { ...idsOf(endpoint), recovered_at: now }
  return [eventAbout(endpoint, { type: 'WebhookEndpointRecovered', data }, { eventId, now })]
}

/** Time for which deliveries are also signed with the previous secret after a rotation. */
const overlapMs = 24 * 60 * 60 * 1000

const maxActiveSecrets = 3

/**
 * Adds a signing secret, also to a disabled endpoint, so that a leaked one can be replaced before the endpoint is
 * enabled. Throws 404 if the endpoint does not exist, 403 if its organization is not active, and 409 if it already has
 * three active secrets.
 */
export function decideSecretRotation(
  state: EndpointsState & { isRepeat: boolean },
  { sealedSecret, eventId, now }: EventIdAndTime & { sealedSecret: Buffer },
): DecidedEvent[] {
  requireUsableOrganization(state.organization, 'key')
  const endpoint = requireEndpoint(state.endpoint)
  if (state.isRepeat) return []
  if (activeSecrets(endpoint.secrets, now).length >= maxActiveSecrets) {
    const message = `${maxActiveSecrets} secrets sign the deliveries of this endpoint; rotate again when the oldest has ended.`
    throw new ApiError('request.conflict', { message })
  }
  const times = { rotated_at: now, previous_expires_at: now + overlapMs }
  const data = { ...idsOf(endpoint), signing_secret_sealed: sealedSecret, ...times }
  return [eventAbout(endpoint, { type: 'WebhookEndpointSecretRotated', data }, { eventId, now })]
}
