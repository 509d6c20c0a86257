import type { EventCodec } from '../../../infra/event-store/codec.ts'
import { type Clock, derivedId } from '../../../infra/ids.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { createFetcher, type FetchOptions } from './fetch.ts'
import type { WaitingSession } from './lookup-queue.ts'
import { type Lookups, runLookups } from './lookups.ts'
import type { LookupSubject } from './tables.ts'

interface AgentLookupOptions extends FetchOptions {
  pool: Db
  log: Pick<EventLog, 'append'>
  codec: EventCodec
  clock: Clock
  logger: Logger
}

/** Runs the lookups that scoring requests, and appends an AgentLookedUp event for each session that waited. */
export function runAgentLookups(options: AgentLookupOptions): Lookups {
  const { pool, log, codec, clock, logger } = options
  const { fetch, close } = createFetcher(options)
  const { request, stop } = runLookups({
    pool,
    clock,
    logger,
    fetch,
    async onResult(subject, sessions) {
      const now = clock()
      await log.append(sessions.map((session) => lookedUpRecord(codec, { subject, session, now })))
    },
  })
  return {
    request,
    async stop() {
      // Abort pending requests first, because `stop` waits for them.
      await close()
      await stop()
    },
  }
}

// The event id doesn't depend on the process, so several processes cause only one decision.
function lookedUpRecord(
  codec: EventCodec,
  { subject, session, now }: { subject: LookupSubject; session: WaitingSession; now: number },
) {
  const eventId = derivedId('alu', session.session_id, subject)
  const { source: _, ...about } = session
  const { organization_id: organizationId, environment } = about
  const data = {
    ...about,
    event_id: eventId,
    decision_id: derivedId('evt', eventId),
    looked_up_at: now,
  }
  return codec.toRecord(
    { type: 'AgentLookedUp', data },
    { eventId, time: now, organizationId, environment },
  )
}
