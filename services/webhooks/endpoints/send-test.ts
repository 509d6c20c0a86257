import { ApiError } from '../../../infra/errors/errors.ts'
import { type DecidedEvent, decidedEvent } from '../../../infra/event-store/decide.ts'
import type { DecisionId } from '../../../infra/ids.ts'
import { organizationFor } from '../../../projections/organizations/queries.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { WebhookEventRaised } from '../../../schemas/events.ts'
import type { TestPayload } from '../deliveries/schemas.ts'
import { endpointFor } from './endpoint-state.ts'

export interface TestState {
  organization: OrganizationRow | undefined
  endpoint: EndpointRow | undefined
  /** When the tests of the last minute were asked for (epoch milliseconds), newest first. */
  recent: number[]
  /** Whether there is an event with the id of the command. */
  exists: boolean
}

export interface SendTest {
  eventId: DecisionId
  /** Epoch milliseconds. */
  now: number
}

export const testWindowMs = 60_000
export const maxTests = 10

/**
 * A webhook.test event for the one endpoint. 404 when there is no such endpoint, 403 when its organization is not
 * active, 409 when the endpoint is disabled, 429 after ten within a minute. No event when the command is repeated.
 */
export function sendTest(state: TestState, command: SendTest): DecidedEvent[] {
  organizationFor(state.organization, 'key')
  const endpoint = endpointFor(state.endpoint)
  if (state.exists) return []
  if (endpoint.status === 'disabled') {
    throw new ApiError('request.conflict', { message: 'The webhook endpoint is disabled; enable it first.' })
  }
  refuseMany(state, command)
  return [testOf(endpoint, command)]
}

function refuseMany({ recent }: TestState, { now }: SendTest): void {
  const tenth = recent[maxTests - 1]
  if (tenth === undefined || tenth <= now - testWindowMs) return
  const seconds = Math.ceil((tenth + testWindowMs - now) / 1000)
  throw new ApiError('rate_limit.exceeded', {
    message: `An endpoint can be tested ${maxTests} times a minute; wait for Retry-After.`,
    headers: { 'retry-after': String(seconds) },
  })
}

function testOf({ id, organization_id, environment }: EndpointRow, { eventId, now }: SendTest): DecidedEvent {
  const payload: TestPayload = { object: 'webhook_test', endpoint: { id } }
  const data: WebhookEventRaised = {
    event_id: eventId,
    organization_id,
    environment,
    type: 'webhook.test',
    subject_type: 'webhook_endpoint',
    subject_id: id,
    data: JSON.stringify(payload),
    created_at: now,
    endpoint_ids: [id],
    route: 'queued',
  }
  return decidedEvent(
    { type: 'WebhookEventRaised', data },
    { organizationId: organization_id, environment, eventId, now },
  )
}
