import { startApprovals } from './approval/approvals.ts'
import type { GateOptions, GateParts } from './context.ts'
import { createGateLimits } from './limits.ts'
import { measuredCalls } from './metrics.ts'
import { createPages } from './store.ts'
import { runTimeOuts } from './time-outs.ts'
import { createVault } from './vault.ts'

export { createGateTables } from './store.ts'

export interface Gate {
  parts: GateParts
  stop(): Promise<void>
}

/** Runs Gate's workers until it is stopped. Needs the tables of `createGateTables`. */
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
  const workers: { stop(): Promise<void> }[] = [approvals, runTimeOuts(parts)]
  return {
    parts,
    async stop() {
      await Promise.all(workers.map((worker) => worker.stop()))
      await options.endCalls?.()
    },
  }
}
