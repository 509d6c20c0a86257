import { eventTopics } from '../../schemas/events.ts'
import type { Projection } from '../projection.ts'
import { apply } from './apply.ts'
import { ddl, indexes, tables } from './tables.ts'

/** Organizations and their API keys. */
export const organizationsProjection: Projection = {
  name: 'organizations',
  version: 2,
  topics: [eventTopics.OrganizationCreated],
  tables,
  ddl,
  indexes,
  apply,
}
