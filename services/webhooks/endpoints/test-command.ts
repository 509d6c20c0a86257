import { type CommandDeps, newId } from '../../../infra/event-store/decide.ts'
import type { DecisionId } from '../../../infra/ids.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import { findEndpoint, findEvents, listEvents } from '../../../projections/webhooks/queries.ts'
import { eventTopics } from '../../../schemas/events.ts'
import type { EndpointPath } from './endpoint-commands.ts'
import { sendTest as decideTest, maxTests, type TestState, testWindowMs } from './send-test.ts'

/**
 * Raises a webhook.test event for one endpoint. ApiError: 404 no such endpoint, 403 organization not active, 409
 * endpoint disabled, 429 after ten within a minute.
 */
export async function sendTest(
  { decide, clock, ...deps }: Omit<CommandDeps, 'keyring'>,
  path: EndpointPath,
): Promise<{ eventId: DecisionId }> {
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  await decide({
    // Where the event is one of many of its partition, and those that count are in any.
    topic: eventTopics.WebhookEventRaised,
    projection: 'webhooks',
    key: eventId,
    reads: 'topic',
    locks: [`webhook-endpoint:${path.endpointId}`],
    load: (tx) => load(tx, { path, eventId, now }),
    decide: (state) => decideTest(state, { eventId, now }),
  })
  return { eventId }
}

interface About {
  path: EndpointPath
  eventId: string
  now: number
}

async function load(tx: Tx, { path, eventId, now }: About): Promise<TestState> {
  const { endpointId } = path
  const since = now - testWindowMs
  const tests = await listEvents(tx, { ...path, type: 'webhook.test', endpointId, since, limit: maxTests })
  return {
    organization: await findOrganization(tx, path.organizationId),
    endpoint: await findEndpoint(tx, path),
    recent: tests.map(({ created_at }) => created_at),
    exists: (await findEvents(tx, [eventId])).has(eventId),
  }
}
