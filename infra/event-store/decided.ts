import type { Environment } from '../../schemas/events.ts'
import type { DomainEvent } from './codec.ts'
import type { Decision } from './decide.ts'

interface About {
  /** null = of nobody's: the built-in service. */
  organizationId: string | null
  /** Of the key or endpoint that it is about; null = of the organization as a whole. */
  environment: Environment | null
  /** A repetition of the same change has the same id and is applied once. */
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

/** The event with what every event says about itself. */
export function decided(event: DomainEvent, { organizationId, environment, eventId, now }: About): Decision {
  return { event, meta: { eventId, time: now, organizationId, environment } }
}
