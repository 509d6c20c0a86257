import type { EventLog, Position, Topic } from '../log/port.ts'
import type { Db } from '../postgres/pool.ts'
import type { Applied } from './applied.ts'
import { catchUp, lastBefore } from './catch-up.ts'
import { databaseIdentity } from './database-identity.ts'

export interface CaughtUpOptions {
  db: Db
  log: Pick<EventLog, 'endPositions'>
  applied: Pick<Applied, 'waitFor'>
  /** Projections, each with a topic that they read. */
  readModels: readonly { projection: string; topic: Topic }[]
  /** Names the run of the database; default: `databaseIdentity`. */
  identify?: ((db: Db) => Promise<string>) | undefined
}

/** Whether read models show what they once showed: not after a start, and not after the database went back. */
export interface CaughtUp {
  /**
   * Resolves with the database's identity when the read models have shown all that the log had at the first call for
   * that identity. Rejects with ApiError service.unavailable after a second, or with what the log or the database said.
   */
  reach(): Promise<string>
  /** Whether all that was read since `reach` resolved with this identity came from a database that had caught up. */
  isStill(identity: string): Promise<boolean>
  /** Rejects when they have been behind for 10 seconds. */
  check(): Promise<void>
}

interface Target {
  identity: string
  ends: { projection: string; records: Position[] }[]
}

const waitMs = 1000
const notReadyAfterMs = 10_000

/**
 * A read model trails the log by milliseconds, and what it has shown it goes on showing, but for two cases: it is still
 * being filled, or the database came back without its last commits or from an older copy. Whoever acts on what it does
 * not show waits for these alone: `reach`, read, and act only if `isStill`; else begin again.
 */
export function createCaughtUp({ identify = databaseIdentity, ...options }: CaughtUpOptions): CaughtUp {
  const { db, log, applied, readModels } = options
  let reached: string | undefined
  let target: Target | undefined
  let reaching: Promise<string> | undefined
  let behindSince: number | undefined

  async function newTarget(identity: string): Promise<Target> {
    const ends = readModels.map(async ({ projection, topic }) => ({
      projection,
      records: lastBefore(await log.endPositions(topic)),
    }))
    return { identity, ends: await Promise.all(ends) }
  }

  async function reachNow(): Promise<string> {
    // Before the wait: a database that goes back during it has another identity at the next `isStill`.
    const identity = await identify(db)
    // Kept for the next try: records that come later are nothing to wait for.
    if (target?.identity !== identity) target = await newTarget(identity)
    for (const end of target.ends) await catchUp(db, { applied, ...end, timeoutMs: waitMs })
    reached = identity
    target = undefined
    behindSince = undefined
    return identity
  }

  async function reach(): Promise<string> {
    if (reached !== undefined) return reached
    reaching ??= reachNow()
      .catch((error) => {
        behindSince ??= performance.now()
        throw error
      })
      .finally(() => {
        reaching = undefined
      })
    return reaching
  }

  return {
    reach,
    async isStill(identity) {
      const isStill = (await identify(db)) === identity
      if (!isStill && reached === identity) reached = undefined
      return isStill
    },
    async check() {
      if (behindSince === undefined || performance.now() - behindSince < notReadyAfterMs) return
      // Whoever waited may have nothing to do any more, and then only this look finds that it is over.
      await reach()
    },
  }
}
