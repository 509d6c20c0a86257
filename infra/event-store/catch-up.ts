import { unavailable } from '../errors/errors.ts'
import { type EventLog, type Position, partitionName, type Topic } from '../log/port.ts'
import type { Db } from '../postgres/pool.ts'
import type { AppliedOffsets } from './applied.ts'
import { findLiveBuild, loadBuildOffsets } from './builds.ts'

export interface CatchUpGateOptions {
  db: Db
  log: Pick<EventLog, 'endPositions'>
  applied: Pick<AppliedOffsets, 'waitFor'>
  readModels: readonly { projection: string; topic: Topic }[]
}

export interface CatchUpGate {
  /**
   * Resolves once the read models show everything that was on the log at the first call; later calls resolve at once.
   * Rejects with 503 `service.unavailable` after a second.
   */
  waitUntilCaughtUp(): Promise<void>
  /** Health check. Rejects if callers have been waiting for the read models for 10 seconds. */
  check(): Promise<void>
}

const waitMs = 1000
const notReadyAfterMs = 10_000

/**
 * Creates a gate for decisions that depend on a row being absent: a read model that is still being filled lacks rows
 * too. Catching up once is enough, because a read model never falls behind what it has shown, except by a restore of
 * the database, after which all processes restart.
 */
export function createCatchUpGate({
  db,
  log,
  applied,
  readModels,
}: CatchUpGateOptions): CatchUpGate {
  let ends: { projection: string; records: Position[] }[] | undefined
  let caughtUp: Promise<void> | undefined
  let behindSince: number | undefined

  function readEnds() {
    const reading = readModels.map(async ({ projection, topic }) => ({
      projection,
      records: lastPositions(await log.endPositions(topic)),
    }))
    return Promise.all(reading)
  }

  async function wait(): Promise<void> {
    try {
      // Kept for retries, which need not wait for later records.
      ends ??= await readEnds()
      for (const end of ends) await waitForRecords(db, { applied, ...end, timeoutMs: waitMs })
      behindSince = undefined
    } catch (error) {
      caughtUp = undefined
      behindSince ??= performance.now()
      throw error
    }
  }

  function waitUntilCaughtUp(): Promise<void> {
    caughtUp ??= wait()
    return caughtUp
  }

  return {
    waitUntilCaughtUp,
    async check() {
      if (behindSince === undefined || performance.now() - behindSince < notReadyAfterMs) return
      // The callers may be gone, so check again here: nothing else would reset `behindSince`.
      await waitUntilCaughtUp()
    },
  }
}

/** Returns the position of the last record before each end; none for an empty partition. */
export function lastPositions(ends: Position[]): Position[] {
  return ends.filter(({ offset }) => offset > 0).map((end) => ({ ...end, offset: end.offset - 1 }))
}

/** Returns the records that the projection's live build has not applied yet. */
export async function findUnapplied(
  db: Db,
  projection: string,
  records: Position[],
): Promise<Position[]> {
  if (records.length === 0) return []
  const build = await findLiveBuild(db, projection)
  if (!build) throw unavailable(new Error(`projection ${projection} has no live build`))
  const offsets = await loadBuildOffsets(db, build)
  const nextOf = new Map(offsets.map((at) => [partitionName(at), at.offset]))
  return records.filter((record) => (nextOf.get(partitionName(record)) ?? 0) <= record.offset)
}

export interface WaitForRecordsOptions {
  applied: Pick<AppliedOffsets, 'waitFor'>
  projection: string
  records: Position[]
  timeoutMs: number
}

/** Waits until the tables that `db` reads show the records. Rejects with 503 `service.unavailable` on a timeout. */
export async function waitForRecords(
  db: Db,
  { applied, projection, records, timeoutMs }: WaitForRecordsOptions,
): Promise<void> {
  const missing = await findUnapplied(db, projection, records)
  if (missing.length === 0) return
  await applied.waitFor(projection, missing, { timeoutMs })
  // Check the table again: after Postgres lost its last commits, notifications may be ahead of it.
  const stillMissing = await findUnapplied(db, projection, missing)
  if (stillMissing.length > 0) throw unavailable(new Error(`projection ${projection} fell behind`))
}
