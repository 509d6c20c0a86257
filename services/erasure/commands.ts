import { createHmac } from 'node:crypto'
import type pg from 'pg'
import type { Keyring, MasterKey } from '../../infra/crypto/keyring.ts'
import type { Applied } from '../../infra/event-store/applied.ts'
import { catchUp, lastBefore } from '../../infra/event-store/catch-up.ts'
import type { Decide } from '../../infra/event-store/decide.ts'
import { type Clock, type Random, timeOrderedId } from '../../infra/ids.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { type Db, type Tx, transaction } from '../../infra/postgres/pool.ts'
import type { ErasureRow } from '../../projections/erasures/projection.ts'
import { findErasure } from '../../projections/erasures/queries.ts'
import { countRows, type Person, sessionsOf, visitorsBeside } from '../../projections/sessions/person.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { eventsAbout } from '../../projections/webhooks/told.ts'
import { eventTopics } from '../../schemas/events.ts'
import { decideErasure, type ErasureState } from './decide.ts'

export interface ErasureDeps {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions'>
  applied: Pick<Applied, 'waitFor'>
  decide: Decide
  keyring: Keyring
  clock: Clock
  random: Random
  // Scoring's: from then on no session is given to the visitor.
  hideVisitor: (tx: Tx, visitorId: string) => Promise<void>
}

interface Erase {
  scope: DataScope
  person: Person
}

const topic = eventTopics.VisitorErased
const waitMs = 10_000

/**
 * The rows of the receipt, once nothing shows the person any more; none where nothing is known of one. A repetition
 * erases what came since, or returns the receipt of before.
 */
export async function erase(deps: ErasureDeps, { scope, person }: Erase): Promise<ErasureRow[]> {
  const { pool } = deps
  const known = await sessionsOf(pool, scope, person)
  if ('visitorId' in person && known.length > 0)
    await transaction(pool, (tx) => deps.hideVisitor(tx, person.visitorId))
  await eraseKnown(deps, { scope, person })
  await allShown(deps)
  return findErasure(pool, scope, askedOf(deps.keyring, { scope, person }))
}

async function eraseKnown(deps: ErasureDeps, { scope, person }: Erase): Promise<void> {
  const { organizationId } = scope
  const now = deps.clock()
  const erasureId = timeOrderedId('ers', now, deps.random)
  await deps.decide({
    locks: [`erasure:${organizationId}`],
    topic,
    key: organizationId,
    projection: 'erasures',
    // A visitor's sessions are in all partitions.
    alsoReads: [
      { projection: 'sessions', topic: eventTopics.SessionScored },
      { projection: 'sessions', topic, key: organizationId },
      { projection: 'webhooks', topic: eventTopics.WebhookEventRaised },
    ],
    load: (tx) => load(tx, { scope, person }),
    decide: (state) => {
      const asked = { scope, erasureId, now, ...subjectOf(deps.keyring.current, { scope, person }) }
      return decideErasure(state, asked)
    },
  })
}

async function load(db: Db, { scope, person }: Erase): Promise<ErasureState> {
  const sessions = await sessionsOf(db, scope, person)
  const sessionIds = sessions.map(({ session_id }) => session_id)
  const visitorIds = [...new Set(sessions.flatMap(({ visitor_id }) => visitor_id ?? []))]
  const told = await eventsAbout(db, { ...scope, sessionIds })
  const deliveries = told.reduce((sum, event) => sum + event.deliveries, 0)
  const rows = await countRows(db, sessionIds)
  return {
    sessions,
    visitorsBeside: await visitorsBeside(db, scope, { visitorIds, sessionIds }),
    counts: { ...rows, webhook_events: told.length, webhook_deliveries: deliveries },
  }
}

async function allShown({ pool, log, applied }: ErasureDeps): Promise<void> {
  const records = lastBefore(await log.endPositions(topic))
  for (const projection of ['erasures', 'sessions', 'repeats', 'webhooks'])
    await catchUp(pool, { applied, projection, records, timeoutMs: waitMs })
}

function subjectOf(master: MasterKey, { scope, person }: Erase) {
  return 'visitorId' in person
    ? { visitorId: person.visitorId, userDigest: null }
    : { visitorId: null, userDigest: userDigest(master, scope, person.clientUserId) }
}

// Under any master key: the receipt stays when they are changed.
function askedOf(keyring: Keyring, { scope, person }: Erase) {
  if ('visitorId' in person) return { visitorId: person.visitorId }
  return { userDigests: keyring.all.map((master) => userDigest(master, scope, person.clientUserId)) }
}

// Ids of users are guessed: without the master key nobody can try them.
function userDigest(master: MasterKey, { organizationId, environment }: DataScope, user: string): string {
  const text = [organizationId, environment, user].join('\0')
  return createHmac('sha256', master.secretKey('erased-user')).update(text).digest('hex')
}
