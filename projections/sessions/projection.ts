import type { Projection } from '../../infra/event-store/projection.ts'
import { eventTopics } from '../../schemas/events.ts'
import { apply } from './apply.ts'
import { ddl, indexes, tables } from './tables.ts'

/** Sessions, their decisions and their visitors: one projection, so that a session and its visitor appear together. */
export const sessionsProjection: Projection = {
  name: 'sessions',
  version: 2,
  topics: [eventTopics.SessionScored],
  tables,
  ddl,
  indexes,
  apply,
}
