import { randomBytes } from 'node:crypto'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { createAppliedOffsets } from '../../infra/event-store/applied.ts'
import { createDecide } from '../../infra/event-store/decide.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { createAddressRules } from '../../infra/safe-http/addresses.ts'
import type { TestLog } from './logs.ts'
import { ensureTopics, openProjectionWorld, silent, tester } from './projections.ts'

export interface RacingOptions {
  testLog: TestLog
  /** Read models to run. */
  projections: Projection[]
  clock: () => number
}

/** Opens the dependencies of three processes on one log and database, among which racers are distributed. */
export async function openProcesses({ testLog, projections, clock }: RacingOptions) {
  const world = await openProjectionWorld()
  const { url, pool: ownPool } = world.database
  const log = await testLog.open()
  await ensureTopics(log)
  for (const projection of projections) await world.run(log, projection)
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const rules = createAddressRules([])
  const closing: (() => Promise<void>)[] = []

  /** Opens what each process has: a small pool, a log, and notifications of projections. */
  async function openProcess() {
    const pool = createPool({ url, max: 6 })
    const applied = await createAppliedOffsets({ url, pool, logger: silent })
    closing.push(async () => {
      await applied.close()
      await pool.end()
    })
    const parts = { pool, log: await testLog.open(), codec: world.codec, applied }
    const decideAs = createDecide({ ...parts, timeoutMs: 30_000 })
    return {
      decideAs,
      decide: decideAs(tester),
      keyring,
      rules,
      clock,
      random: randomBytes,
      pool,
      logger: silent,
    }
  }

  const processes = [await openProcess(), await openProcess(), await openProcess()]
  return {
    /** Pool of the test. */
    pool: ownPool,
    processes,
    processOf(racer: number) {
      const process = processes[racer % processes.length]
      if (!process) throw new Error('no process')
      return process
    },
    /** Closes everything except the test's log. */
    async close(): Promise<void> {
      for (const close of closing) await close()
      await world.close()
    },
  }
}

export type Processes = Awaited<ReturnType<typeof openProcesses>>

/** Runs the racers concurrently. Returns `done` or the error code of each. */
export function race(racers: number, run: (racer: number) => Promise<unknown>): Promise<string[]> {
  const codeOf = (error: unknown) => (error instanceof ApiError ? error.code : String(error))
  return Promise.all(
    Array.from({ length: racers }, (_, racer) => run(racer).then(() => 'done', codeOf)),
  )
}
