import { countText } from '../../../infra/text.ts'
import type { KeyType } from '../../../schemas/events.ts'
import type { Waits } from './pacer.ts'
import {
  type LatencySummary,
  type MeasuredEndpoint,
  type Recording,
  summarize,
} from './recorder.ts'
import type { Verification } from './verify.ts'

export interface SimulationReport {
  seed: string
  baseUrl: string
  /** True if the sessions had proofs made with the simulation key in DATA_DIR. */
  hasKey: boolean
  completed: number
  failed: number
  /** Completed sessions that presented the continuity token of an earlier visit. */
  returning: number
  durationMs: number
  sessionsPerSecond: number
  requestsPerSecond: number
  acknowledgedBatches: number
  latency: Record<MeasuredEndpoint, LatencySummary>
  errors: { endpoint: string; code: string; count: number }[]
  waits: Record<KeyType, Waits>
  verification: Verification | null
}

export function createReport({
  counts,
  recording,
  durationMs,
  waits,
  verification,
  ...source
}: Pick<
  SimulationReport,
  'seed' | 'baseUrl' | 'hasKey' | 'durationMs' | 'waits' | 'verification'
> & {
  counts: Pick<SimulationReport, 'completed' | 'failed' | 'returning'>
  recording: Recording
}): SimulationReport {
  const { open, batch, result, readback } = recording.durations
  const perSecond = (count: number) =>
    durationMs > 0 ? Math.round((count / durationMs) * 10_000) / 10 : 0
  return {
    ...source,
    ...counts,
    durationMs: Math.round(durationMs),
    sessionsPerSecond: perSecond(counts.completed),
    requestsPerSecond: perSecond(open.length + batch.length + result.length),
    acknowledgedBatches: batch.length,
    latency: {
      open: summarize(open),
      batch: summarize(batch),
      result: summarize(result),
      readback: summarize(readback),
    },
    errors: errorList(recording),
    waits,
    verification,
  }
}

function errorList({ errors }: Recording): SimulationReport['errors'] {
  const list = Array.from(errors, ([key, count]) => {
    const [endpoint = '', ...code] = key.split(' ')
    return { endpoint, code: code.join(' '), count }
  })
  return list.sort((a, b) => b.count - a.count)
}

/** Formats the report for a terminal. `organization` is the id or slug of the organization that the keys belong to. */
export function formatReport(report: SimulationReport, organization = '<organization>'): string {
  const { completed, failed, returning, durationMs, sessionsPerSecond, requestsPerSecond } = report
  return [
    `Seed ${report.seed}, ${report.baseUrl}`,
    `${countText(completed, 'session')} in ${seconds(durationMs)}, ${failed} failed, ${returning} from returning visitors`,
    `${sessionsPerSecond} sessions/s, ${requestsPerSecond} requests/s, ${report.acknowledgedBatches} batches acknowledged`,
    '',
    ...latencyLines(report.latency),
    '',
    ...errorLines(report.errors),
    ...waitLines(report.waits, organization),
    '',
    ...proofLines(report),
    ...(report.verification ? ['', ...verificationLines(report.verification)] : []),
  ].join('\n')
}

function latencyLines(latency: SimulationReport['latency']): string[] {
  const columns = ['count', 'p50', 'p95', 'p99', 'max'] as const
  const line = (name: string, cells: readonly (string | number)[]) =>
    name.padEnd(10) + cells.map((cell) => String(cell).padStart(10)).join('')
  const measured = Object.entries(latency).filter(([, { count }]) => count > 0)
  const rows = measured.map(([name, summary]) =>
    line(
      name,
      columns.map((column) => summary[column]),
    ),
  )
  return [line('ms', columns), ...rows]
}

function errorLines(errors: SimulationReport['errors']): string[] {
  const total = errors.reduce((sum, { count }) => sum + count, 0)
  return [
    countText(total, 'error'),
    ...errors.map(({ endpoint, code, count }) => `  ${count} ${endpoint} ${code}`),
  ]
}

/** Returns the failures as text, for standard error when the report is printed as JSON. */
export function errorReport({ failed, errors, verification }: SimulationReport): string {
  const unreadable = verification?.unreadable.length ?? 0
  return [
    ...errorLines(errors),
    `${countText(failed, 'session')} failed`,
    ...(unreadable > 0 ? [`${countText(unreadable, 'session')} could not be read back`] : []),
  ].join('\n')
}

function waitLines(waits: SimulationReport['waits'], organization: string): string[] {
  const types = ['publishable', 'secret'] as const
  return types.flatMap((type) => {
    const { denied, overloaded, held, waitedMs } = waits[type]
    const overloadLines =
      overloaded > 0
        ? [
            `Overload: ${countText(overloaded, 'request')} got 503 and ${overloaded === 1 ? 'was' : 'were'} retried`,
          ]
        : []
    if (denied + held === 0) return overloadLines
    return [
      ...overloadLines,
      `Rate limit of ${type} keys: ${countText(held, 'request')} delayed, ${denied} got 429, ${seconds(waitedMs)} waited`,
      `  to raise it: tidegate org limits ${organization} --${type} 100000`,
    ]
  })
}

// Says whether the sessions carried simulation proofs and, if not, why none can be scored as human.
function proofLines({ hasKey, verification }: SimulationReport): string[] {
  if (hasKey && !verification)
    return ['The sessions carried proofs made with the simulation key in DATA_DIR.']
  if (hasKey && verification?.proven)
    return ['The sessions proved with the simulation key in DATA_DIR that they are simulated.']
  const reason = hasKey
    ? 'The simulation key in DATA_DIR belongs to another server'
    : 'DATA_DIR has no simulation key (only tidegate dev creates one)'
  return [
    `${reason}, so no session can be scored as human: at best it is inconclusive, like that of any script.`,
    'This run does not measure bot detection.',
  ]
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`

function verificationLines({ readable, unreadable, verdicts, proven }: Verification): string[] {
  const statuses = (counts: Record<string, number>) =>
    Array.from(Object.entries(counts), ([status, count]) => `${count} ${status}`).join(', ')
  return [
    `${countText(readable, 'session')} readable, ${unreadable.length} not; ${proven} marked as simulated`,
    ...unreadable.slice(0, 10).map((id) => `  not readable: ${id}`),
    ...Object.entries(verdicts).map(
      ([actor, counts]) => `  ${actor.padEnd(12)}${statuses(counts)}`,
    ),
  ]
}
