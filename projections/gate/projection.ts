import type { Projection } from '../../infra/event-store/projection.ts'
import { eventTopics } from '../../schemas/events.ts'
import { apply } from './apply.ts'
import { ddl, indexes, tables } from './tables.ts'

/** Gate: services, signups and logins, agent tokens. */
export const gateProjection: Projection = {
  name: 'gate',
  version: 1,
  topics: [eventTopics.GateSessionOpened],
  tables,
  ddl,
  indexes,
  apply,
}
