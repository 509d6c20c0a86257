import { startApprovals } from './approval/approvals.ts'
import { measuredCalls } from './approval/measured-calls.ts'
import type { GateOptions, GateParts } from './context.ts'
import { createGateLimits } from './serving/limits.ts'
import { createPages } from './serving/pages.ts'
import { createVault } from './serving/vault.ts'
import { runScheduler } from './time-outs/scheduler.ts'

export { createGateTables } from './serving/tables.ts'

export interface Gate {
  parts: GateParts
  /** Resolves when its workers have ended. */
  stop(): Promise<void>
}

/** What Gate's routes work with, and its workers, which run until it is stopped. Needs the tables of `createGateTables`. */
export function startGate(options: GateOptions): Gate {
  const shared = {
    ...options,
    directCalls: measuredCalls(options),
    limits: createGateLimits(options.pool),
    vault: createVault(options),
    pages: createPages(options),
  }
  const approvals = startApprovals(shared)
  const parts = { ...shared, approvals }
  const workers: { stop(): Promise<void> }[] = [approvals, runScheduler(parts)]
  return {
    parts,
    async stop() {
      await Promise.all(workers.map((worker) => worker.stop()))
      await options.endCalls?.()
    },
  }
}
