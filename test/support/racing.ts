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
  /** The read models that run. */
  projections: Projection[]
  clock: () => number
}

/** What three processes decide with on one log and one database; the racers are spread over them. */
export async function openProcesses({ testLog, projections, clock }: RacingOptions) {
  const world = await openProjectionWorld()
  const { url, pool: ownPool } = world.database
  const log = await testLog.open()
  await ensureTopics(log)
  for (const projection of projections) await world.run(log, projection)
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const rules = createAddressRules([])
  const closing: (() => Promise<void>)[] = []

  /** Everything that a process has of its own: a small pool, its log, its ear for projections. */
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
    /** The test's own. */
    pool: ownPool,
    processes,
    processOf(racer: number) {
      const process = processes[racer % processes.length]
      if (!process) throw new Error('no process')
      return process
    },
    /** Leaves the test's log to the test. */
    async close(): Promise<void> {
      for (const close of closing) await close()
      await world.close()
    },
  }
}

export type Processes = Awaited<ReturnType<typeof openProcesses>>

/** What became of each racer: 'done' or the code of its refusal. */
export function race(racers: number, run: (racer: number) => Promise<unknown>): Promise<string[]> {
  const codeOf = (error: unknown) => (error instanceof ApiError ? error.code : String(error))
  return Promise.all(
    Array.from({ length: racers }, (_, racer) => run(racer).then(() => 'done', codeOf)),
  )
}
