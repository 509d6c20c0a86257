import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { eventTopics } from '../../schemas/events.ts'
import { apply, organizationIdOf } from './apply.ts'
import { ddl, indexes, tables } from './tables.ts'

/** Nothing that is kept of a key follows from these. */
const unseen: ReadonlySet<string> = new Set([
  'OrganizationCreated',
  'OrganizationRenamed',
  'ApiKeyIssued',
  'ApiKeyRenamed',
])

/** The organizations whose keys have to be looked up again. */
function subjectsOf(events: RecordedEvent[]): string[] {
  const seen = events.filter(({ type }) => !unseen.has(type))
  return [...new Set(seen.map(organizationIdOf))]
}

/** Organizations and their API keys. */
export const organizationsProjection: Projection = {
  name: 'organizations',
  version: 2,
  topics: [eventTopics.OrganizationCreated],
  tables,
  ddl,
  indexes,
  apply,
  subjectsOf,
}
