import type { Registry } from 'prom-client'
import { NotReady, type ReadinessCheck } from '../../infra/http/health.ts'
import type { MissingProxyDetector } from '../../infra/http/missing-proxy.ts'
import { cachedFor } from '../../infra/timing.ts'
import { eventTopics } from '../../schemas/events.ts'
import { watchStall } from '../scoring/stall.ts'
import { readOffsets } from '../scoring/store.ts'
import type { Core } from './dependencies.ts'
import type { Role } from './roles.ts'
import { checkWorkers, type RunningWorker, requireNoStuckPartition } from './workers.ts'
import { probeRecord, writeProbeSql } from './write-probe.ts'

export interface ReadinessParts {
  roles: readonly Role[]
  running: RunningWorker[]
  registry: Registry
  missingProxy: MissingProxyDetector
  undo: AsyncDisposableStack
}

/**
 * Returns the readiness checks of the roles. They also write to the log and the database, at most every five seconds,
 * because reads still work with a full disk or too few Kafka brokers.
 */
export function readinessChecks(core: Core, parts: ReadinessParts): ReadinessCheck[] {
  const { pool, log, logRefusal } = core
  const { roles, running, missingProxy } = parts
  const writeDatabase = cachedFor(5000, async () => void (await pool.query(writeProbeSql)))
  const writeLog = cachedFor(5000, async () => void (await log.append([probeRecord])))
  const readAndWrite = (read: () => Promise<unknown>, write: () => Promise<void>) => async () =>
    void (await Promise.all([read(), write()]))
  const checks: ReadinessCheck[] = [
    { name: 'database', check: readAndWrite(() => pool.query('select 1'), writeDatabase) },
    { name: 'log', check: readAndWrite(() => log.check(), writeLog) },
    { name: 'log_position', check: async () => throwIf(logRefusal()?.message) },
    { name: 'consumers', check: async () => requireNoStuckPartition(running) },
    { name: 'workers', check: () => checkWorkers(running) },
  ]
  if (!roles.includes('collect') && !roles.includes('scoring')) return checks
  const stallReason = watchScoring(core, parts)
  return [
    ...checks,
    // Only warns without the scoring role, so that the process keeps receiving batches of running sessions.
    {
      name: 'scoring',
      isWarning: !roles.includes('scoring'),
      check: async () => throwIf(stallReason()),
    },
    { name: 'proxies', isWarning: true, check: async () => throwIf(missingProxy.warning()) },
  ]
}

function watchScoring({ pool, log, logger }: Core, { registry, undo }: ReadinessParts) {
  const readStored = () => readOffsets(pool, eventTopics.BatchReceived)
  const { reason, stop } = watchStall({ readStored, log, logger, registry })
  undo.defer(stop)
  return reason
}

function throwIf(reason: string | undefined): void {
  if (reason !== undefined) throw new NotReady(reason)
}
