import { requireUsableOrganization } from '../../../infra/access/organization.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import {
  type CommandDeps,
  type DecidedEvent,
  eventAbout,
  newId,
} from '../../../infra/event-store/decide.ts'
import type { DecisionId } from '../../../infra/ids.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { findEndpoint, findEvents, listEvents } from '../../../projections/webhooks/queries.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import { eventTopics, type WebhookEventRaised } from '../../../schemas/events.ts'
import type { TestPayload } from '../events/schemas.ts'
import type { EndpointPath } from './commands.ts'
import { requireEndpoint } from './decide.ts'

/** Raises a test event for the endpoint. Throws the errors of `decideTest`. */
export async function sendTest(
  { decide, clock, ...deps }: Omit<CommandDeps, 'keyring'>,
  path: EndpointPath,
): Promise<{ eventId: DecisionId }> {
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  await decide({
    // `reads: 'topic'`, because earlier tests, which count towards the limit, can be in any partition.
    topic: eventTopics.WebhookEventRaised,
    projection: 'webhooks',
    key: eventId,
    reads: 'topic',
    locks: [`webhook-endpoint:${path.endpointId}`],
    load: (tx) => load(tx, path, { eventId, now }),
    decide: (state) => decideTest(state, { eventId, now }),
  })
  return { eventId }
}

async function load(
  tx: Tx,
  path: EndpointPath,
  { eventId, now }: { eventId: string; now: number },
): Promise<TestState> {
  const { endpointId } = path
  const since = now - testWindowMs
  const tests = await listEvents(tx, {
    ...path,
    type: 'webhook.test',
    endpointId,
    since,
    limit: maxTests,
  })
  return {
    organization: await findOrganization(tx, path.organizationId),
    endpoint: await findEndpoint(tx, path),
    recentTests: tests.map(({ created_at }) => created_at),
    isRepeat: (await findEvents(tx, [eventId])).has(eventId),
  }
}

export interface TestState {
  organization: OrganizationRow | undefined
  endpoint: EndpointRow | undefined
  /** Times of the tests within the last minute, epoch milliseconds, newest first. */
  recentTests: number[]
  isRepeat: boolean
}

const testWindowMs = 60_000
const maxTests = 10

/**
 * Returns no event for a repeated command. Throws 404 if the endpoint does not exist, 403 if its organization is not
 * active, 409 if the endpoint is disabled, and 429 after ten tests within a minute.
 */
export function decideTest(
  state: TestState,
  { eventId, now }: { eventId: DecisionId; now: number },
): DecidedEvent[] {
  requireUsableOrganization(state.organization, 'key')
  const endpoint = requireEndpoint(state.endpoint)
  if (state.isRepeat) return []
  if (endpoint.status === 'disabled') {
    throw new ApiError('request.conflict', {
      message: 'The webhook endpoint is disabled; enable it first.',
    })
  }
  refuseTooManyTests(state, now)
  const { id, organization_id, environment } = endpoint
  const payload: TestPayload = { object: 'webhook_test', endpoint: { id } }
  const data: WebhookEventRaised = {
    event_id: eventId,
    organization_id,
    environment,
    created_at: now,
    type: 'webhook.test',
    subject_type: 'webhook_endpoint',
    subject_id: id,
    data: JSON.stringify(payload),
    endpoint_ids: [id],
    route: 'queued',
  }
  return [eventAbout(endpoint, { type: 'WebhookEventRaised', data }, { eventId, now })]
}

function refuseTooManyTests({ recentTests }: TestState, now: number): void {
  const tenthAt = recentTests[maxTests - 1]
  if (tenthAt === undefined || tenthAt <= now - testWindowMs) return
  const seconds = Math.ceil((tenthAt + testWindowMs - now) / 1000)
  throw new ApiError('rate_limit.exceeded', {
    message: `An endpoint can be tested ${maxTests} times a minute; wait for Retry-After.`,
    headers: { 'retry-after': String(seconds) },
  })
}
