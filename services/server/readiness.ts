import type { Registry } from 'prom-client'
import { NotReady, type ReadinessCheck } from '../../infra/http/health.ts'
import type { MissingProxy } from '../../infra/http/missing-proxy.ts'
import { seldom } from '../../infra/timing.ts'
import { eventTopics } from '../../schemas/events.ts'
import { watchStall } from '../scoring/stall.ts'
import { readOffsets } from '../scoring/store.ts'
import { allWork, type Running, requireNoneStopped } from './consumers.ts'
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
 * What a process needs to serve. It tries to write to the log and the database, every five seconds at most. A full
 * disk, and a Kafka with too few brokers, can still be read from.
 */
export function readinessChecks(core: Core, parts: ReadinessParts): ReadinessCheck[] {
  const { pool, log, logRefusal } = core
  const { roles, running, missingProxy } = parts
  const writeDatabase = seldom(5000, async () => void (await pool.query(writeProbe)))
  const writeLog = seldom(5000, async () => void (await log.append([probeRecord])))
  const both = (read: () => Promise<unknown>, write: () => Promise<void>) => async () =>
    void (await Promise.all([read(), write()]))
  const checks: ReadinessCheck[] = [
    { name: 'database', check: both(() => pool.query('select 1'), writeDatabase) },
    { name: 'log', check: both(() => log.check(), writeLog) },
    { name: 'log_position', check: async () => refuseFor(logRefusal()?.message) },
    { name: 'consumers', check: async () => requireNoneStopped(running) },
    { name: 'workers', check: () => allWork(running) },
  ]
  if (!roles.includes('collect') && !roles.includes('scoring')) return checks
  const stalled = watchScoring(core, parts)
  return [
    ...checks,
    // A process without the role stays ready, so that running sessions keep their batches.
    { name: 'scoring', warns: !roles.includes('scoring'), check: async () => refuseFor(stalled()) },
    { name: 'proxies', warns: true, check: async () => refuseFor(missingProxy.warning()) },
  ]
}

function watchScoring({ pool, log, logger }: Core, { registry, undo }: ReadinessParts) {
  const readStored = () => readOffsets(pool, eventTopics.BatchReceived)
  const { reason, stop } = watchStall({ readStored, log, logger, registry })
  undo.defer(stop)
  return reason
}

function refuseFor(reason: string | undefined): void {
  if (reason !== undefined) throw new NotReady(reason)
}
