import { isDeepStrictEqual } from 'node:util'
import { organizationFor } from '../../../infra/access/organization.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { DomainEvent } from '../../../infra/event-store/codec.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import { decidedEvent } from '../../../infra/event-store/decide.ts'
import { derivedId, type EndpointId } from '../../../infra/ids.ts'
import { directType } from '../../../infra/wire/webhooks/direct-call.ts'
import { liveSecrets } from '../../../infra/wire/webhooks/signature.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { DisabledReason, EndpointRow, FlaggedReason } from '../../../projections/webhooks/tables.ts'
import type {
  Environment,
  WebhookEndpointCreated,
  WebhookEndpointDisabled,
  WebhookEndpointSecretRotated,
} from '../../../schemas/events.ts'
import type { EndpointSpec, EndpointUpdate } from './schemas.ts'

export interface EndpointsState {
  organization: OrganizationRow | undefined
  endpoint: EndpointRow | undefined
  active: number
  /** Ids of the active services whose approvals go to the endpoint. */
  services: readonly string[]
}

export interface EndpointName {
  environment: Environment
  endpointId: string
}

/** The same for an id that is malformed, unknown, or of another environment or organization: nobody learns which. */
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

function refuseNeeded({ services }: Pick<EndpointsState, 'services'>): void {
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

/** 404 without the organization, 403 when it is not active, 409 at the limit. No event for a repeated command. */
export function decideEndpointCreation(state: EndpointsState, command: CreateEndpoint): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const { organizationId, environment, endpointId, spec, sealedSecret, now } = command
  if (state.endpoint) return []
  refuseManyActive(state)
  const data: WebhookEndpointCreated = {
    organization_id: organizationId,
    endpoint_id: endpointId,
    environment,
    ...spec,
    signing_secret_sealed: sealedSecret,
    created_at: now,
  }
  const eventId = derivedId('evt', endpointId, 'created')
  return [
    decidedEvent({ type: 'WebhookEndpointCreated', data }, { organizationId, environment, eventId, now }),
  ]
}

interface UpdateEndpoint {
  changes: EndpointUpdate
  changeId: string
  now: number
}

/**
 * One event for each of name, URL, subscriptions and status that changes. 404 without the endpoint, 403 when its
 * organization is not active. 409 when it is enabled at the limit, and when it is disabled or unsubscribed from
 * approvals while services need them.
 */
export function decideEndpointUpdate(state: EndpointsState, command: UpdateEndpoint): DecidedEvent[] {
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

export function mayEndApprovals({ status, event_types }: EndpointUpdate): boolean {
  return status === 'disabled' || event_types?.includes(directType) === false
}

function endsApprovals(endpoint: EndpointRow, { status, event_types }: EndpointUpdate): boolean {
  if (status === 'disabled' && endpoint.status === 'active') return true
  return event_types?.includes(directType) === false && endpoint.event_types.includes(directType)
}

const idsOf = ({ organization_id, id: endpoint_id }: EndpointRow) => ({ organization_id, endpoint_id })

function described(endpoint: EndpointRow, { changes, now }: UpdateEndpoint): DomainEvent[] {
  const { name = endpoint.name, url = endpoint.url, event_types = endpoint.event_types } = changes
  const events: DomainEvent[] = []
  if (name !== endpoint.name) {
    events.push({ type: 'WebhookEndpointRenamed', data: { ...idsOf(endpoint), name, renamed_at: now } })
  }
  if (url !== endpoint.url) {
    events.push({ type: 'WebhookEndpointMoved', data: { ...idsOf(endpoint), url, moved_at: now } })
  }
  if (!isDeepStrictEqual(event_types, endpoint.event_types)) {
    const data = { ...idsOf(endpoint), event_types, changed_at: now }
    events.push({ type: 'WebhookEndpointSubscriptionsChanged', data })
  }
  return events
}

function switched(endpoint: EndpointRow, { changes, now }: UpdateEndpoint): DomainEvent[] {
  const { status = endpoint.status } = changes
  if (status === endpoint.status) return []
  if (status === 'active') {
    return [{ type: 'WebhookEndpointEnabled', data: { ...idsOf(endpoint), enabled_at: now } }]
  }
  const data = { ...idsOf(endpoint), reason: 'manual', disabled_at: now } as const
  return [{ type: 'WebhookEndpointDisabled', data }]
}

interface DisableEndpoint {
  eventId: string
  now: number
}

/** No event when it is disabled already. 404 without it, 403 when the organization is not active, 409 while services need it. */
export function decideDisabling(state: EndpointsState, command: DisableEndpoint): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const endpoint = endpointFor(state.endpoint)
  if (endpoint.status === 'disabled') return []
  refuseNeeded(state)
  return [disabled(endpoint, { ...command, reason: 'manual' })]
}

type GiveUpState = Pick<EndpointsState, 'endpoint' | 'services'>

interface GiveUpEndpoint {
  reason: FlaggedReason
  // When the request began that shows the reason.
  seenAt: number
  eventId: string
  now: number
}

/**
 * Disables an endpoint that cannot be delivered to, or flags it while services need it for approvals: to disable it
 * would end all signups for them. No event when it is disabled or flagged for as much already, or when its owner has
 * enabled or moved it since the request.
 */
export function decideGivingUp({ endpoint, services }: GiveUpState, command: GiveUpEndpoint): DecidedEvent[] {
  if (endpoint?.status !== 'active' || endpoint.target_since > command.seenAt) return []
  if (services.length === 0) return [disabled(endpoint, command)]
  const isFlagged = endpoint.flagged_reason === 'gone' || endpoint.flagged_reason === command.reason
  return isFlagged ? [] : [flagged(endpoint, command)]
}

export function decideRecovery(
  endpoint: EndpointRow | undefined,
  { eventId, now }: DisableEndpoint,
): DecidedEvent[] {
  if (!endpoint || endpoint.flagged_reason === null) return []
  const { organization_id, id: endpoint_id } = endpoint
  const data = { organization_id, endpoint_id, recovered_at: now }
  return [aboutEndpoint(endpoint, { type: 'WebhookEndpointRecovered', data }, { eventId, now })]
}

function disabled(
  endpoint: EndpointRow,
  { reason, eventId, now }: { reason: DisabledReason; eventId: string; now: number },
): DecidedEvent {
  const { organization_id, id: endpoint_id } = endpoint
  const data: WebhookEndpointDisabled = { organization_id, endpoint_id, reason, disabled_at: now }
  return aboutEndpoint(endpoint, { type: 'WebhookEndpointDisabled', data }, { eventId, now })
}

function flagged(endpoint: EndpointRow, { reason, eventId, now }: GiveUpEndpoint): DecidedEvent {
  const { organization_id, id: endpoint_id } = endpoint
  const data = { organization_id, endpoint_id, reason, flagged_at: now }
  // An id of its own: what flags an endpoint may disable it later, when no service needs it any more.
  const ids = { eventId: derivedId('evt', eventId, 'flagged'), now }
  return aboutEndpoint(endpoint, { type: 'WebhookEndpointFlagged', data }, ids)
}

function aboutEndpoint(
  { organization_id: organizationId, environment }: EndpointRow,
  event: DomainEvent,
  ids: DisableEndpoint,
): DecidedEvent {
  return decidedEvent(event, { organizationId, environment, ...ids })
}

interface RotateSecret {
  sealedSecret: Buffer
  eventId: string
  now: number
}

export interface SecretRotationState extends EndpointsState {
  has: boolean
}

/** How long the previous secret of a rotation still signs. */
export const overlapMs = 24 * 60 * 60 * 1000

const maxLiveSecrets = 3

/**
 * The new secret signs from now on, beside the previous one for 24 hours. A disabled endpoint gets one too, so that a
 * leaked secret is replaced before it is enabled. 404 without the endpoint, 403 when its organization is not active, 409
 * when three secrets sign. No event for a repeated command.
 */
export function decideSecretRotation(state: SecretRotationState, command: RotateSecret): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const { id, organization_id, environment, secrets } = endpointFor(state.endpoint)
  if (state.has) return []
  const { sealedSecret, eventId, now } = command
  if (liveSecrets(secrets, now).length >= maxLiveSecrets) {
    const message = `${maxLiveSecrets} secrets sign the deliveries of this endpoint; rotate again when the oldest has ended.`
    throw new ApiError('request.conflict', { message })
  }
  const data: WebhookEndpointSecretRotated = {
    organization_id,
    endpoint_id: id,
    signing_secret_sealed: sealedSecret,
    rotated_at: now,
    previous_expires_at: now + overlapMs,
  }
  return [
    decidedEvent(
      { type: 'WebhookEndpointSecretRotated', data },
      { organizationId: organization_id, environment, eventId, now },
    ),
  ]
}
