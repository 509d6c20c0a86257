import { randomBytes } from 'node:crypto'
import type { Applied } from '../../infra/event-store/applied.ts'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import { type Id, timeOrderedId } from '../../infra/ids.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { runTogether } from '../../infra/postgres/arrays.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { saveRows } from '../../infra/postgres/table.ts'
import { links as linkTable } from '../../services/scoring/visitors/tables.ts'
import { testCause } from '../support/projections.ts'
import { metaOf, sessionScored, visitorLink } from '../support/session-scored.ts'

/** A user of an organization's live environment, with two sessions of one visitor and one of another. The first is marked. */
export interface Person {
  visitorId: string
  otherVisitorId: string
  sessionId: string
  clientUserId: string
  markId: string
}

interface PersonDeps {
  pool: Db
  log: EventLog
  codec: EventCodec
  applied: Pick<Applied, 'waitFor'>
  clock: () => number
}

/** As scoring and read models have it, when it resolves. */
export async function storePerson(deps: PersonDeps, organizationId: string): Promise<Person> {
  const { pool, log, codec, applied, clock } = deps
  const id = <P extends 'sid' | 'vid' | 'evt' | 'mrk'>(prefix: P): Id<P> =>
    timeOrderedId(prefix, clock(), randomBytes)
  const person = {
    visitorId: id('vid'),
    otherVisitorId: id('vid'),
    sessionId: id('sid'),
    clientUserId: `user_${randomBytes(6).toString('hex')}`,
    markId: id('mrk'),
  }
  const about = { organization_id: organizationId, environment: 'live' as const }
  const sessions = [
    { session_id: person.sessionId, visitor_id: person.visitorId },
    { session_id: id('sid'), visitor_id: person.visitorId },
    { session_id: id('sid'), visitor_id: person.otherVisitorId },
  ]
  const scored = sessions.map(({ session_id, visitor_id }) =>
    sessionScored({
      ...about,
      session_id,
      event_id: id('evt'),
      visitor: visitorLink({ id: visitor_id }),
    }),
  )
  const { sessionId: session_id, clientUserId: client_user_id, markId: mark_id } = person
  const attached = {
    ...about,
    session_id,
    event_id: id('evt'),
    client_user_id,
    attached_at: clock(),
  }
  const mark = { mark_id, label: 'bot' as const, reason: null, marked_at: clock() }
  const marked = { ...about, session_id, event_id: id('evt'), ...mark }
  const positions = await log.append([
    ...scored.map((data) => codec.toRecord({ type: 'SessionScored', data }, metaOf(data))),
    codec.toCausedRecord(
      { type: 'ClientUserAttached', data: attached },
      metaOf(attached),
      testCause,
    ),
    codec.toCausedRecord({ type: 'SessionMarked', data: marked }, metaOf(marked), testCause),
  ])
  const links = sessions.map((session) => ({
    ...session,
    ...about,
    linked_at: clock(),
    storage_key: session.session_id,
    profile: null,
    keys: [],
    apart_from: null,
    merged_at: null,
  }))
  await runTogether(pool, saveRows(linkTable, links))
  await applied.waitFor('sessions', positions, { timeoutMs: 20_000 })
  return person
}
