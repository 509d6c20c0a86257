import { clientKeysOf } from '../../services/cli/simulate/client-keys.ts'
import type { SimulationReport } from '../../services/cli/simulate/report.ts'
import type { SimulationOptions } from '../../services/cli/simulate/simulate.ts'
import { simulate } from '../../services/cli/simulate/simulate.ts'
import type { Child } from '../child.ts'
import type { Environment } from '../environment.ts'
import { type Measurement, megabytes } from '../measurement.ts'
import { memory, resetPeak } from '../procfs.ts'
import { answersOf } from '../recorded-answers.ts'
import { quantile, spreadOf } from '../stats.ts'

export interface Traffic {
  environment: Environment
  child: Child
}

/**
 * Sends sessions of realistic size with the reference client. Throws if any request failed, because errors are cheap to
 * serve.
 */
export async function sendTraffic(
  { environment, child }: Traffic,
  options: Pick<SimulationOptions, 'sessions' | 'concurrency'> & Partial<SimulationOptions>,
): Promise<SimulationReport> {
  const { live } = await environment.credentials()
  const report = await simulate({
    baseUrl: child.url,
    publishableKeys: clientKeysOf(live),
    seed: 'bench',
    createAnswers: answersOf,
    ...options,
  })
  if (report.failed > 0) throw new Error(`simulate failed: ${JSON.stringify(report.errors)}`)
  return report
}

/** Measures the resident memory of the all-in-one process under load. */
export async function measureMemory(traffic: Traffic, sessions: number): Promise<Measurement> {
  const { pid } = traffic.child
  const samples: number[] = []
  resetPeak(pid)
  const timer = setInterval(() => samples.push(megabytes(memory(pid).resident)), 250)
  const report = await sendTraffic(traffic, { sessions, concurrency: 32 }).finally(() =>
    clearInterval(timer),
  )
  return {
    name: `memory of the all-in-one process while simulating ${sessions.toLocaleString('en')} sessions`,
    log: traffic.environment.logName,
    unit: 'MB',
    value: spreadOf([megabytes(memory(pid).peak)]),
    aim: { direction: 'at most', value: 400 },
    details: { ...flatness(samples), 'sessions/s': report.sessionsPerSecond },
  }
}

/** Medians of the second and the last quarter. Memory kept per session would show as growth between them. */
function flatness(samples: number[]): Record<string, number> {
  const quarter = (from: number) =>
    quantile(
      samples
        .slice((samples.length * (from - 1)) / 4, (samples.length * from) / 4 + 1)
        .sort((a, b) => a - b),
      0.5,
    )
  return { 'second quarter MB': quarter(2), 'last quarter MB': quarter(4) }
}

/** Measures hand-offs without other load: one session at a time, with pauses. */
export async function measureHandOff(traffic: Traffic, sessions: number): Promise<Measurement[]> {
  const { latency } = await sendTraffic(traffic, {
    sessions,
    concurrency: 1,
    rate: 20,
    seed: 'hand-off',
  })
  const { p50, p99, max } = latency.result
  const line = (name: string, value: number, aim: number): Measurement => ({
    name: `results hand-off ${name}, idle`,
    log: traffic.environment.logName,
    unit: 'ms',
    value: spreadOf([value]),
    aim: { direction: 'at most', value: aim },
    details: { sessions, 'max ms': max },
  })
  return [line('p50', p50, 15), line('p99', p99, 150)]
}
