import { NotReady, type ReadinessCheck } from '../../infra/http/health.ts'
import { seldom } from '../../infra/timing.ts'
import { allWork, type Running, requireNoneStopped } from './consumers.ts'
import type { Core } from './dependencies.ts'
import { probeRecord, writeProbe } from './write-probe.ts'

/**
 * What a process needs to serve. It tries to write to the log and the database, every five seconds at most. A full
 * disk, and a Kafka with too few brokers, can still be read from.
 */
export function readinessChecks(
  core: Core,
  running: Running[],
  ofRoles: ReadinessCheck[] = [],
): ReadinessCheck[] {
  const { pool, log } = core
  const writeDatabase = seldom(5000, async () => void (await pool.query(writeProbe)))
  const writeLog = seldom(5000, async () => void (await log.append([probeRecord])))
  const both = (read: () => Promise<unknown>, write: () => Promise<void>) => async () =>
    void (await Promise.all([read(), write()]))
  return [
    { name: 'database', check: both(() => pool.query('select 1'), writeDatabase) },
    { name: 'log', check: both(() => log.check(), writeLog) },
    { name: 'log_position', check: async () => requireWholeLog(core) },
    { name: 'consumers', check: async () => requireNoneStopped(running) },
    { name: 'workers', check: () => allWork(running) },
    ...ofRoles,
  ]
}

function requireWholeLog({ logRefusal }: Core): void {
  const refusal = logRefusal()
  if (refusal) throw new NotReady(refusal.message)
}
