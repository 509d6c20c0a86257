import { storedKeys } from '../../services/cli/simulate/client-keys.ts'
import type { SimulationReport } from '../../services/cli/simulate/report.ts'
import { type SimulationOptions, simulate } from '../../services/cli/simulate/simulate.ts'
import type { Measurement } from '../measurement.ts'
import { spreadOf } from '../stats.ts'
import type { Traffic } from './traffic.ts'

interface Load {
  /** Sessions a second that the process takes at most. */
  peak: number
  seconds: number
}

const timesPeak = 3
/** Tries of a fresh session before it counts as not recovered. */
const mostProbes = 60

/**
 * An open loop of sessions at three times the peak: what is shed, and how long admitted ones wait for their hand-off.
 * Then, once no more come, how soon a fresh session meets no refusal. The clients try again as real ones do.
 */
export async function measureOverload(traffic: Traffic, { peak, seconds }: Load): Promise<Measurement[]> {
  const rate = Math.max(1, Math.round(peak * timesPeak))
  const sessions = rate * seconds
  const report = await send(traffic, { sessions, concurrency: sessions, rate, seed: 'overload' })
  const recoveredMs = await recovery(traffic)
  const { open, result } = report.latency
  const line = { log: traffic.environment.logName, unit: 'ms' } as const
  const shed = refusalsOf(report, 'open')
  return [
    {
      ...line,
      name: 'hand-off p99 of admitted sessions, at three times the peak',
      value: spreadOf([result.p99]),
      aim: { direction: 'at most', value: 2000 },
      details: {
        'sessions/s begun': rate,
        'share of opens shed': shed / Math.max(1, shed + open.count),
        'hand-off p50 ms': result.p50,
        'hand-offs 503': refusalsOf(report, 'result'),
        'sessions finished': report.completed,
        'sessions given up': report.failed,
      },
    },
    {
      ...line,
      name: 'from the last answer of the overload to a hand-off without a refusal',
      value: spreadOf([recoveredMs]),
      aim: { direction: 'at most', value: 2000 },
      details: {},
    },
  ]
}

function refusalsOf({ errors }: SimulationReport, endpoint: string): number {
  return errors.find((one) => one.endpoint === endpoint && one.code === 'service.unavailable')?.count ?? 0
}

async function recovery(traffic: Traffic): Promise<number> {
  const start = performance.now()
  for (let probe = 0; probe < mostProbes; probe++) {
    const { errors } = await send(traffic, { sessions: 1, concurrency: 1, seed: `recovery ${probe}` })
    if (errors.length === 0) return performance.now() - start
  }
  throw new Error(`a fresh session was refused ${mostProbes} times after the overload`)
}

/** Refusals are what is measured, so they are no failure here. */
async function send(
  { environment, child }: Traffic,
  options: Pick<SimulationOptions, 'sessions' | 'concurrency' | 'rate' | 'seed'>,
): Promise<SimulationReport> {
  const { live } = await environment.credentials()
  return simulate({ baseUrl: child.url, publishableKeys: storedKeys(live), ...options })
}
