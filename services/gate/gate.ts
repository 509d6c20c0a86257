import { startApprovals } from './approval/approvals.ts'
import type { GateOptions, GateParts } from './context.ts'
import { runGateRetention } from './erasure/retention.ts'
import { runGateExpiry } from './expiry.ts'
import { createGateLimits } from './limits.ts'
import { withAttemptMetrics } from './metrics.ts'
import { createPages } from './store.ts'
import { createVault } from './vault.ts'

export { gateMigrations } from './store.ts'

export type Gate = ReturnType<typeof startGate>

/** Starts Gate's workers. Needs the tables of `gateMigrations`. */
export function startGate(options: GateOptions) {
  const parts: GateParts = {
    ...options,
    directCalls: withAttemptMetrics(options.directCalls, options.meter),
    limits: createGateLimits(options.pool),
    vault: createVault(options),
    pages: createPages(options),
  }
  const approvals = startApprovals(parts)
  const workers: { stop(): Promise<void> }[] = [
    approvals,
    runGateExpiry(parts),
    runGateRetention(parts),
  ]
  return {
    parts: { ...parts, approvals },
    async stop(): Promise<void> {
      await Promise.all(workers.map((worker) => worker.stop()))
      await options.closeWebhookClient?.()
    },
  }
}
