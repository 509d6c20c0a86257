// Erases a person's sessions and visitors, in an order in which no session is missed:
//   1. Wait until scoring has read the whole log and the `sessions` read model its decisions.
//   2. Stop scoring from linking sessions to the person's visitors, and collect open sessions without a decision.
//   3. Delete saved views that name the person. If the process dies here, a repeat erases the rest.
//   4. Append VisitorErased under the organization's erasure lock, with the sessions that the read models have by then.
//   5. Wait until every read model has applied the event. The receipt outlives the data.

import { createHmac } from 'node:crypto'
import type pg from 'pg'
import type { Keyring, MasterKey } from '../../infra/crypto/keyring.ts'
import type { AppliedOffsets } from '../../infra/event-store/applied.ts'
import { lastPositions, waitForRecords } from '../../infra/event-store/catch-up.ts'
import type { CommandDeps, Decide, DecideRequest } from '../../infra/event-store/decide.ts'
import { type Clock, type Random, timeOrderedId } from '../../infra/ids.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { type Db, type Tx, transaction } from '../../infra/postgres/pool.ts'
import { withMergedVisitors } from '../../projections/corrections/projection.ts'
import type { ErasureRow } from '../../projections/erasures/projection.ts'
import { findErasure, findErasures } from '../../projections/erasures/queries.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import {
  countRowsOf,
  findSelectedSessions,
  findSessionVisitors,
  type SessionSelector,
  visitorsWithOtherSessions,
} from '../../projections/sessions/selected-sessions.ts'
import { findEventsAboutSessions } from '../../projections/webhooks/events-about-sessions.ts'
import { eventTopics } from '../../schemas/events.ts'
import { decideErasure, type ErasureState } from './decide.ts'

export interface ErasureDeps {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions'>
  applied: Pick<AppliedOffsets, 'waitFor'>
  decide: Decide
  keyring: Keyring
  clock: Clock
  random: Random
  /** Resolves once scoring has read everything that is on the log now. */
  waitForScoring: () => Promise<void>
  /** Stops scoring from linking more sessions to the visitors. Returns their open sessions without a decision. */
  stopLinking: (tx: Tx, visitors: UnlinkableVisitors) => Promise<string[]>
  /** Deletes the saved views that have any of the ids. Returns their number. */
  deleteViewsNaming: (
    deps: Omit<CommandDeps, 'keyring'>,
    scope: DataScope,
    ids: readonly string[],
  ) => Promise<number>
}

export type AppendErasureDeps = Omit<
  ErasureDeps,
  'waitForScoring' | 'stopLinking' | 'deleteViewsNaming'
>

export interface UnlinkableVisitors {
  scope: DataScope
  visitorIds: string[]
  /** Sessions erased earlier: a returning client may still present ids from them. */
  erasedSessionIds: string[]
}

interface ErasureRequest {
  scope: DataScope
  person: SessionSelector
}

const topic = eventTopics.VisitorErased
const waitMs = 10_000

/**
 * Resolves to the rows of the receipt once no read model has the person, or to no rows if the person is unknown. A
 * repeat erases sessions added since, or returns the earlier receipt.
 */
export async function erasePerson(
  deps: ErasureDeps,
  request: ErasureRequest,
): Promise<ErasureRow[]> {
  const { scope } = request
  await waitUntilScored(deps)
  const { openSessionIds, erasedIds } = await stopLinkingPerson(deps, request)
  const views = await deps.deleteViewsNaming(deps, scope, erasedIds)
  await appendPersonErasure(deps, { ...request, openSessionIds, views })
  await waitUntilErased(deps, ['erasures', 'sessions', 'repeats', 'webhooks'])
  return findErasure(deps.pool, scope, receiptKeysOf(deps.keyring, request))
}

async function waitUntilScored({ pool, log, applied, waitForScoring }: ErasureDeps): Promise<void> {
  await waitForScoring()
  const records = lastPositions(await log.endPositions(eventTopics.SessionScored))
  await waitForRecords(pool, { applied, projection: 'sessions', records, timeoutMs: waitMs })
}

// Returns the open sessions of the person's visitors, and all ids of the person. Visitors that also have other people's sessions stay linkable,
// because their open sessions may belong to those people.
async function stopLinkingPerson(
  { pool, stopLinking, keyring }: ErasureDeps,
  request: ErasureRequest,
): Promise<{ openSessionIds: string[]; erasedIds: string[] }> {
  const { scope, person } = request
  const sessions = await findSelectedSessions(pool, scope, person)
  const sessionIds = sessions.map(({ session_id }) => session_id)
  const visitorIds = [...new Set(sessions.flatMap(({ visitor_id }) => visitor_id ?? []))]
  const isVisitor = 'visitorId' in person
  const shared = isVisitor
    ? new Set<string>()
    : await visitorsWithOtherSessions(pool, scope, { visitorIds, sessionIds })
  const receipts = isVisitor ? await findErasures(pool, scope, receiptKeysOf(keyring, request)) : []
  const unlinkable = {
    scope,
    visitorIds: visitorIds.filter((id) => !shared.has(id)),
    erasedSessionIds: receipts.flatMap(({ session_ids }) => session_ids),
  }
  const { visitorIds: ownVisitorIds, erasedSessionIds } = unlinkable
  const canLink = ownVisitorIds.length > 0 || erasedSessionIds.length > 0
  const openSessionIds = canLink ? await transaction(pool, (tx) => stopLinking(tx, unlinkable)) : []
  const personIds = 'sessionIds' in person ? [] : Object.values(person)
  const visitors = await withMergedVisitors(pool, scope, [...personIds, ...ownVisitorIds])
  const erasedIds = [...visitors, ...sessionIds, ...erasedSessionIds, ...openSessionIds]
  return { openSessionIds, erasedIds }
}

/** Appends the erasure of the person's sessions in the read models, and of open sessions. */
export function appendPersonErasure(
  deps: AppendErasureDeps,
  request: ErasureRequest & { openSessionIds: string[]; views?: number },
): Promise<void> {
  const { organizationId } = request.scope
  return appendErasure(deps, request.scope, {
    // A visitor's sessions are in all partitions.
    alsoReads: [
      { projection: 'sessions', topic: eventTopics.SessionScored },
      { projection: 'sessions', topic, key: organizationId },
    ],
    load: (tx) => loadErasureState(tx, request),
    subject: subjectOf(deps.keyring.current, request),
  })
}

/** Appends the erasure of the sessions that `load` returns, if any. The receipt can later be found by `subject`. */
export async function appendErasure(
  { decide, clock, random }: AppendErasureDeps,
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
  const events = await findEventsAboutSessions(db, about)
  const deliveries = events.reduce((sum, event) => sum + event.deliveries, 0)
  return { webhook_events: events.length, webhook_deliveries: deliveries }
}

async function loadErasureState(
  db: Db,
  {
    scope,
    person,
    openSessionIds,
    views = 0,
  }: ErasureRequest & {
    openSessionIds: string[]
    views?: number
  },
): Promise<ErasureState> {
  const scored = await findSelectedSessions(db, scope, person)
  const scoredIds = new Set(scored.map(({ session_id }) => session_id))
  const open = await findSessionVisitors(
    db,
    openSessionIds.filter((id) => !scoredIds.has(id)),
  )
  const sessions = [...scored, ...open]
  const sessionIds = sessions.map(({ session_id }) => session_id)
  const visitorIds = [...new Set(sessions.flatMap(({ visitor_id }) => visitor_id ?? []))]
  const rows = await countRowsOf(db, sessionIds)
  return {
    sessions,
    visitorsWithOtherSessions: await visitorsWithOtherSessions(db, scope, {
      visitorIds,
      sessionIds,
    }),
    counts: {
      open_sessions: open.length,
      ...rows,
      views,
      ...(await countWebhooks(db, { ...scope, sessionIds })),
    },
  }
}

/** Waits until the projections have applied all erasures that are on the log. */
export async function waitUntilErased(
  { pool, log, applied }: Pick<ErasureDeps, 'pool' | 'log' | 'applied'>,
  projections: readonly string[],
): Promise<void> {
  const records = lastPositions(await log.endPositions(topic))
  for (const projection of projections)
    await waitForRecords(pool, { applied, projection, records, timeoutMs: waitMs })
}

function subjectOf(master: MasterKey, { scope, person }: ErasureRequest) {
  if ('visitorId' in person) return { visitorId: person.visitorId, userDigest: null }
  const isUser = 'clientUserId' in person
  return {
    visitorId: null,
    userDigest: isUser ? digestSubject(master, scope, person.clientUserId) : null,
  }
}

// Returns the visitor id, or the user's digest under every master key, because receipts outlive key rotations.
function receiptKeysOf(keyring: Keyring, { scope, person }: ErasureRequest) {
  if ('visitorId' in person) return { visitorId: person.visitorId }
  const user = 'clientUserId' in person ? person.clientUserId : ''
  return { userDigests: keyring.all.map((master) => digestSubject(master, scope, user)) }
}

/** Returns an HMAC, because a plain hash of a user id could be reversed by guessing ids. */
export function digestSubject(
  master: MasterKey,
  { organizationId, environment }: DataScope,
  subject: string,
): string {
  const text = [organizationId, environment, subject].join('\0')
  return createHmac('sha256', master.secretKey('erased-user')).update(text).digest('hex')
}
