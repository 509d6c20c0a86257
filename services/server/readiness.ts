import type { Registry } from 'prom-client'
import { NotReady, type ReadinessCheck } from '../../infra/http/health.ts'
import type { MissingProxy } from '../../infra/http/missing-proxy.ts'
import { cachedFor } from '../../infra/timing.ts'
import { eventTopics } from '../../schemas/events.ts'
import { watchStall } from '../scoring/stall.ts'
import { readOffsets } from '../scoring/store.ts'
import { checkWorkers, type Running, requireNoneStopped } from './consumers.ts'
import type { Core } from './dependencies.ts'
import type { Role } from './roles.ts'
import { probeRecord, writeProbe } from './write-probe.ts'

export interface ReadinessParts {
  roles: readonly Role[]
  running: Running[]
  registry: Registry
  missingProxy: MissingProxy
  undo: AsyncDisposableStack
}

/**
 * Returns the readiness checks of the roles. They also write to the log and the database, at most every five seconds,
 * because a full disk or a Kafka cluster with too few brokers still serves reads.
 */
export function readinessChecks(core: Core, parts: ReadinessParts): ReadinessCheck[] {
  const { pool, log, logRefusal } = core
  const { roles, running, missingProxy } = parts
  const writeDatabase = cachedFor(5000, async () => void (await pool.query(writeProbe)))
  const writeLog = cachedFor(5000, async () => void (await log.append([probeRecord])))
  const readAndWrite = (read: () => Promise<unknown>, write: () => Promise<void>) => async () =>
    void (await Promise.all([read(), write()]))
  const checks: ReadinessCheck[] = [
    { name: 'database', check: readAndWrite(() => pool.query('select 1'), writeDatabase) },
    { name: 'log', check: readAndWrite(() => log.check(), writeLog) },
    { name: 'log_position', check: async () => throwIf(logRefusal()?.message) },
    { name: 'consumers', check: async () => requireNoneStopped(running) },
    { name: 'workers', check: () => checkWorkers(running) },
  ]
  if (!roles.includes('collect') && !roles.includes('scoring')) return checks
  const stallReason = watchScoring(core, parts)
  return [
    ...checks,
    // Only a warning without the role, so that the process keeps receiving the batches of running sessions.
    {
      name: 'scoring',
      warns: !roles.includes('scoring'),
      check: async () => throwIf(stallReason()),
    },
    { name: 'proxies', warns: true, check: async () => throwIf(missingProxy.warning()) },
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
