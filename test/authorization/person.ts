import { randomBytes } from 'node:crypto'
import { runAsOneStatement } from '../../infra/postgres/arrays.ts'
import { saveRows } from '../../infra/postgres/table.ts'
import { links as linkTable } from '../../services/scoring/visitors/tables.ts'
import type { Api } from '../support/api.ts'
import { sessionScored, visitorLink } from '../support/session-scored.ts'

/** A user of an organization's live environment, with two sessions of one visitor and one of another. The first is marked. */
export interface Person {
  visitorId: string
  otherVisitorId: string
  sessionId: string
  clientUserId: string
  markId: string
}

/** As scoring and read models have it, when it resolves. */
export async function storePerson(api: Api, organizationId: string): Promise<Person> {
  const { newId, now } = api
  const [visitorId, otherVisitorId, sessionId] = [newId('vid'), newId('vid'), newId('sid')]
  const [clientUserId, markId] = [`user_${randomBytes(6).toString('hex')}`, newId('mrk')]
  const about = { organization_id: organizationId, environment: 'live' as const }
  const sessions = [
    { session_id: sessionId, visitor_id: visitorId },
    { session_id: newId('sid'), visitor_id: visitorId },
    { session_id: newId('sid'), visitor_id: otherVisitorId },
  ]
  const scored = sessions.map(({ session_id, visitor_id }) => {
    const visitor = visitorLink({ id: visitor_id })
    const data = sessionScored({ ...about, session_id, event_id: newId('evt'), visitor })
    return { type: 'SessionScored', data } as const
  })
  const ofFirst = () => ({ ...about, session_id: sessionId, event_id: newId('evt') })
  await api.write(
    { organizationId, environment: 'live' },
    ...scored,
    {
      type: 'ClientUserAttached',
      data: { ...ofFirst(), client_user_id: clientUserId, attached_at: now.ms },
    },
    {
      type: 'SessionMarked',
      data: { ...ofFirst(), mark_id: markId, label: 'bot', reason: null, marked_at: now.ms },
    },
  )
  const links = sessions.map((session) => ({
    ...session,
    ...about,
    linked_at: now.ms,
    storage_key: session.session_id,
    profile: null,
    keys: [],
    apart_from: null,
    merged_at: null,
  }))
  await runAsOneStatement(api.pool, saveRows(linkTable, links))
  await api.caughtUp()
  return { visitorId, otherVisitorId, sessionId, clientUserId, markId }
}
