import type { Registry } from 'prom-client'
import { NotReady, type ReadinessCheck } from '../../infra/http/health.ts'
import type { MissingProxy } from '../../infra/http/missing-proxy.ts'
import { eventTopics } from '../../schemas/events.ts'
import { watchStall } from '../scoring/stall.ts'
import { readOffsets } from '../scoring/store.ts'
import type { Core } from './dependencies.ts'
import type { Role } from './roles.ts'

interface CheckParts {
  roles: readonly Role[]
  registry: Registry
  missingProxy: MissingProxy
  undo: AsyncDisposableStack
}

/** Readiness checks of some roles. A process without `scoring` stays ready, so that running sessions keep their batches. */
export function checksOfRoles(
  { pool, log, logger }: Core,
  { roles, registry, missingProxy, undo }: CheckParts,
): ReadinessCheck[] {
  if (!roles.includes('collect') && !roles.includes('scoring')) return []
  const readStored = () => readOffsets(pool, eventTopics.BatchReceived)
  const stall = watchStall({ readStored, log, logger, registry })
  undo.defer(stall.stop)
  return [
    { name: 'scoring', warns: !roles.includes('scoring'), check: async () => refuseFor(stall.reason()) },
    { name: 'proxies', warns: true, check: async () => refuseFor(missingProxy.warning()) },
  ]
}

function refuseFor(reason: string | undefined): void {
  if (reason !== undefined) throw new NotReady(reason)
}
