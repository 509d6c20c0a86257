import { ApiError } from '../../../infra/errors/errors.ts'
import { type DecidedEvent, decidedEvent } from '../../../infra/event-store/decide.ts'
import { liveSecrets } from '../../../infra/wire/webhooks/signature.ts'
import { organizationFor } from '../../../projections/organizations/queries.ts'
import type { WebhookEndpointSecretRotated } from '../../../schemas/events.ts'
import { type EndpointsState, endpointFor } from './endpoint-state.ts'

export interface RotateSecret {
  /** The new signing secret as it is stored. */
  sealedSecret: Buffer
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

export interface RotateState extends EndpointsState {
  /** Whether the endpoint has the command's secret. */
  has: boolean
}

/** How long the previous secret of a rotation still signs. */
export const overlapMs = 24 * 60 * 60 * 1000

/** As many signatures as a delivery carries at most. */
const maxLiveSecrets = 3

/**
 * A new secret that signs from now on, beside the previous one for 24 hours. Also of a disabled endpoint, so that a
 * leaked secret is replaced before it is enabled. 404 when there is no such endpoint, 403 when its organization is not
 * active, 409 when three secrets sign. No event when the command is repeated.
 */
export function rotateSecret(state: RotateState, command: RotateSecret): DecidedEvent[] {
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
