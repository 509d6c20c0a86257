import type pg from 'pg'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import { runPeriodically } from '../../infra/flow/periodic.ts'
import { type Clock, derivedId } from '../../infra/ids.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { type Tx, transaction, tryLock } from '../../infra/postgres/pool.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { sessionLifetimeMs } from '../../infra/wire/collect/protocol.ts'
import { type Environment, eventTopics, type SessionIdled } from '../../schemas/events.ts'

interface SchedulerOptions {
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  clock: Clock
  logger: Logger
  intervalMs?: number
}

const maxSessions = 500

/**
 * Ends sessions: appends SessionIdled after 30 to 40 minutes without a body, or at 24 hours, and deletes the states of
 * final sessions 25 hours after they opened. Any number may run; a lock lets one work at a time.
 */
export function runSessionScheduler(options: SchedulerOptions): { stop(): Promise<void> } {
  const { logger, intervalMs = 5000 } = options
  return runPeriodically({
    intervalMs,
    work: async () => (await endSessions(options)) === maxSessions,
    onError: (err) => logger.error({ err }, 'failed to end idle sessions; retrying'),
  })
}

/** Runs one poll. Returns the number of ended sessions, at most 500, or 0 if another process holds the lock. */
export async function endSessions({ log, pool, codec, clock }: SchedulerOptions): Promise<number> {
  const now = clock()
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, 'tidegate:session-scheduler'))) return 0
    const due = await takeDueSessions(tx, now)
    // Append before the mark is committed: a crash in between repeats the same event ids.
    if (due.length > 0) await log.append(due.map((session) => idledRecord(codec, session, now)))
    await deleteFinalStates(tx)
    return due.length
  })
}

// Compares with the log's time instead of the clock: while scoring lags or replays old records, more records of a
// finished session may follow. Skips rows locked by scoring, to avoid deadlocks.
async function deleteFinalStates(tx: Tx): Promise<void> {
  await tx.query(
    `delete from scoring.sessions where session_id in (
       select s.session_id from scoring.offsets o join scoring.sessions s using (partition)
        where o.topic = $1 and s.final_at is not null and s.due_at < o.log_time
          -- A bound that the index can use. Without it, each poll read all final sessions.
          and s.due_at < (select max(log_time) from scoring.offsets where topic = $1)
          for update of s skip locked)`,
    [eventTopics.BatchReceived],
  )
}

interface DueSession {
  session_id: string
  organization_id: string
  environment: Environment
  opened_at: string
  last_activity_at: string
}

// Returns sessions to end, and marks them so that the next poll skips them unless they become active again.
async function takeDueSessions(tx: Tx, now: number): Promise<DueSession[]> {
  const { rows } = await tx.query<DueSession>(
    `update scoring.sessions set idled_at = $1
      where session_id in (
        select session_id from scoring.sessions
         where final_at is null and due_at <= $1
           and (idled_at is null or idled_at < last_activity_at or idled_at < $1::bigint - 600000)
         order by due_at limit $2 for update skip locked)
      returning session_id, organization_id, environment, opened_at, last_activity_at`,
    [now, maxSessions],
  )
  return rows
}

function idledRecord(codec: EventCodec, session: DueSession, now: number) {
  const { session_id, organization_id, environment } = session
  const reason = Number(session.opened_at) <= now - sessionLifetimeMs ? 'expired' : 'idle'
  const event_id = derivedId('idl', session_id, reason, session.last_activity_at)
  const data: SessionIdled = {
    session_id,
    organization_id,
    environment,
    event_id,
    decision_id: derivedId('evt', event_id),
    idled_at: now,
    reason,
  }
  const meta = { eventId: event_id, time: now, organizationId: organization_id, environment }
  return codec.toRecord({ type: 'SessionIdled', data }, meta)
}
