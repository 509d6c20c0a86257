import { timeOrderedId } from '../../infra/ids.ts'
import { findSession, type Scope } from '../../projections/sessions/queries.ts'
import { eventTopics } from '../../schemas/events.ts'
import { changeClientUser } from './client-user.ts'
import type { ReadbackContext } from './routes.ts'

type Dependencies = Pick<ReadbackContext, 'decide' | 'clock' | 'random'>

interface UpdateClientUser {
  scope: Scope
  sessionId: string
  clientUserId: string | null
}

/** Resolves when the session reads with the given client user id. */
export async function updateClientUser(
  { decide, clock, random }: Dependencies,
  { scope, sessionId, clientUserId }: UpdateClientUser,
): Promise<void> {
  const at = clock()
  const eventId = timeOrderedId('evt', at, random)
  await decide({
    locks: [`session:${sessionId}`],
    topic: eventTopics.ClientUserAttached,
    key: sessionId,
    projection: 'sessions',
    load: (tx) => findSession(tx, scope, sessionId),
    decide: (session) =>
      changeClientUser(session ?? { client_user_id: null }, {
        sessionId,
        clientUserId,
        eventId,
        at,
        ...scope,
      }).map((event) => ({ event, meta: { eventId, time: at, ...scope } })),
  })
}
