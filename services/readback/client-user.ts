import { type Decide, decidedEvent } from '../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { type Clock, type Random, timeOrderedId } from '../../infra/ids.ts'
import { findSession } from '../../projections/sessions/queries.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { eventTopics } from '../../schemas/events.ts'

/** Attaches or clears a session's client user id. Resolves once reads return the change. */
export async function updateClientUser(
  { decide, clock, random }: { decide: Decide; clock: Clock; random: Random },
  change: Pick<ClientUserChange, keyof DataScope | 'sessionId' | 'clientUserId'>,
): Promise<void> {
  const { sessionId, clientUserId: _, ...scope } = change
  const at = clock()
  const eventId = timeOrderedId('evt', at, random)
  await decide({
    locks: [`session:${sessionId}`],
    topic: eventTopics.ClientUserAttached,
    key: sessionId,
    projection: 'sessions',
    load: (tx) => findSession(tx, scope, sessionId),
    decide: (session) =>
      decideClientUser(session?.client_user_id ?? null, { ...change, eventId, at }).map((event) =>
        decidedEvent(event, { ...scope, eventId, now: at }),
      ),
  })
}

interface ClientUserChange extends DataScope {
  sessionId: string
  /** null clears the id. */
  clientUserId: string | null
  eventId: string
  at: number
}

/** Returns the event that attaches or clears the client user id; none if nothing changes. */
export function decideClientUser(current: string | null, command: ClientUserChange): DomainEvent[] {
  const { sessionId, organizationId, environment, clientUserId, eventId, at } = command
  if (current === clientUserId) return []
  const ids = {
    session_id: sessionId,
    organization_id: organizationId,
    environment,
    event_id: eventId,
  }
  return clientUserId === null
    ? [{ type: 'ClientUserCleared', data: { ...ids, cleared_at: at } }]
    : [
        {
          type: 'ClientUserAttached',
          data: { ...ids, client_user_id: clientUserId, attached_at: at },
        },
      ]
}
