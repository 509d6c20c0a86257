import { createHmac } from 'node:crypto'
import type pg from 'pg'
import type { Keyring, MasterKey } from '../../infra/crypto/keyring.ts'
import type { Applied } from '../../infra/event-store/applied.ts'
import { catchUp, lastBefore } from '../../infra/event-store/catch-up.ts'
import type { Decide, DecideRequest } from '../../infra/event-store/decide.ts'
import { type Clock, type Random, timeOrderedId } from '../../infra/ids.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { type Db, type Tx, transaction } from '../../infra/postgres/pool.ts'
import type { ErasureRow } from '../../projections/erasures/projection.ts'
import { findErasure, findErasures } from '../../projections/erasures/queries.ts'
import {
  countRows,
  type Person,
  sessionsOf,
  visitorsWithOtherSessions,
  withVisitors,
} from '../../projections/sessions/person.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { eventsAbout } from '../../projections/webhooks/events-about.ts'
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
  /** Resolves once scoring has read what the log has. */
  scoringFollows: () => Promise<void>
  /**
   * Has scoring link no session to the visitors from then on. Returns their sessions that are open and not decided about
   * yet.
   */
  hideVisitors: (tx: Tx, visitors: Hidden) => Promise<string[]>
}

export type DecidingDeps = Omit<ErasureDeps, 'scoringFollows' | 'hideVisitors'>

export interface Hidden {
  scope: DataScope
  visitorIds: string[]
  /** Sessions that were erased before, because their clients may have come back. */
  erasedSessionIds: string[]
}

interface Erase {
  scope: DataScope
  person: Person
}

const topic = eventTopics.VisitorErased
const waitMs = 10_000

/**
 * The rows of the receipt, once no read model has the person any more; none where nothing is known of one. A repetition
 * erases what came since, or returns the earlier receipt.
 */
export async function erase(deps: ErasureDeps, request: Erase): Promise<ErasureRow[]> {
  const { scope } = request
  await allScored(deps)
  const openIds = await hide(deps, request)
  await eraseKnown(deps, { ...request, openIds })
  await waitUntilApplied(deps, ['erasures', 'sessions', 'repeats', 'webhooks'])
  return findErasure(deps.pool, scope, receiptKeysOf(deps.keyring, request))
}

// So that a session that was opened before the request is known.
async function allScored({ pool, log, applied, scoringFollows }: ErasureDeps): Promise<void> {
  await scoringFollows()
  const records = lastBefore(await log.endPositions(eventTopics.SessionScored))
  await catchUp(pool, { applied, projection: 'sessions', records, timeoutMs: waitMs })
}

// Hides the person's visitors from scoring. A visitor that has sessions of others, too, stays, because its open sessions
// may be theirs.
async function hide(
  { pool, hideVisitors, keyring }: ErasureDeps,
  request: Erase,
): Promise<string[]> {
  const { scope, person } = request
  const known = await sessionsOf(pool, scope, person)
  const sessionIds = known.map(({ session_id }) => session_id)
  const visitorIds = [...new Set(known.flatMap(({ visitor_id }) => visitor_id ?? []))]
  const isVisitor = 'visitorId' in person
  const shared = isVisitor
    ? new Set<string>()
    : await visitorsWithOtherSessions(pool, scope, { visitorIds, sessionIds })
  const erased = isVisitor ? await findErasures(pool, scope, receiptKeysOf(keyring, request)) : []
  const hidden = {
    scope,
    visitorIds: visitorIds.filter((id) => !shared.has(id)),
    erasedSessionIds: erased.flatMap(({ session_ids }) => session_ids),
  }
  if (hidden.visitorIds.length === 0 && hidden.erasedSessionIds.length === 0) return []
  return transaction(pool, (tx) => hideVisitors(tx, hidden))
}

/** Decides the erasure of what the read models know. */
export function eraseKnown(
  deps: DecidingDeps,
  request: Erase & { openIds: string[] },
): Promise<void> {
  const { organizationId } = request.scope
  return decideOn(deps, request.scope, {
    // A visitor's sessions are in all partitions.
    alsoReads: [
      { projection: 'sessions', topic: eventTopics.SessionScored },
      { projection: 'sessions', topic, key: organizationId },
    ],
    load: (tx) => load(tx, request),
    subject: subjectOf(deps.keyring.current, request),
  })
}

/** Decides an erasure on the state that `load` returns. `subject` is what its receipt is found by. */
export async function decideOn(
  { decide, clock, random }: DecidingDeps,
  scope: DataScope,
  options: {
    alsoReads: NonNullable<DecideRequest<ErasureState>['alsoReads']>
    load: (tx: Tx) => Promise<ErasureState>
    subject: { visitorId: string | null; userDigest: string | null }
  },
): Promise<void> {
  const { alsoReads, load, subject } = options
  const { organizationId: key } = scope
  const now = clock()
  const erasureId = timeOrderedId('ers', now, random)
  await decide({
    locks: [`erasure:${key}`],
    topic,
    key,
    projection: 'erasures',
    alsoReads: [...alsoReads, { projection: 'webhooks', topic: eventTopics.WebhookEventRaised }],
    load,
    decide: (state) => decideErasure(state, { scope, erasureId, now, ...subject }),
  })
}

export async function countWebhooks(
  db: Db,
  about: DataScope & { sessionIds: string[] },
): Promise<Record<string, number>> {
  const events = await eventsAbout(db, about)
  const deliveries = events.reduce((sum, event) => sum + event.deliveries, 0)
  return { webhook_events: events.length, webhook_deliveries: deliveries }
}

async function load(
  db: Db,
  { scope, person, openIds }: Erase & { openIds: string[] },
): Promise<ErasureState> {
  const known = await sessionsOf(db, scope, person)
  const knownIds = new Set(known.map(({ session_id }) => session_id))
  const open = await withVisitors(
    db,
    openIds.filter((id) => !knownIds.has(id)),
  )
  const sessions = [...known, ...open]
  const sessionIds = sessions.map(({ session_id }) => session_id)
  const visitorIds = [...new Set(sessions.flatMap(({ visitor_id }) => visitor_id ?? []))]
  const rows = await countRows(db, sessionIds)
  return {
    sessions,
    visitorsWithOtherSessions: await visitorsWithOtherSessions(db, scope, {
      visitorIds,
      sessionIds,
    }),
    counts: {
      open_sessions: open.length,
      ...rows,
      ...(await countWebhooks(db, { ...scope, sessionIds })),
    },
  }
}

/** Waits until the projections have applied all erasures that the log has. */
export async function waitUntilApplied(
  { pool, log, applied }: Pick<ErasureDeps, 'pool' | 'log' | 'applied'>,
  projections: readonly string[],
): Promise<void> {
  const records = lastBefore(await log.endPositions(topic))
  for (const projection of projections)
    await catchUp(pool, { applied, projection, records, timeoutMs: waitMs })
}

function subjectOf(master: MasterKey, { scope, person }: Erase) {
  if ('visitorId' in person) return { visitorId: person.visitorId, userDigest: null }
  const isUser = 'clientUserId' in person
  return {
    visitorId: null,
    userDigest: isUser ? userDigest(master, scope, person.clientUserId) : null,
  }
}

// What a receipt is found by: a visitor, or a user's digest under any master key, since receipts outlive those.
function receiptKeysOf(keyring: Keyring, { scope, person }: Erase) {
  if ('visitorId' in person) return { visitorId: person.visitorId }
  const user = 'clientUserId' in person ? person.clientUserId : ''
  return { userDigests: keyring.all.map((master) => userDigest(master, scope, user)) }
}

/** An HMAC, because ids of users can be guessed: without the master key nobody can try them. */
export function userDigest(
  master: MasterKey,
  { organizationId, environment }: DataScope,
  user: string,
): string {
  const text = [organizationId, environment, user].join('\0')
  return createHmac('sha256', master.secretKey('erased-user')).update(text).digest('hex')
}
