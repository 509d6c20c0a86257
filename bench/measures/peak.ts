import type { LogName } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import type { Scale } from '../scale.ts'
import { spreadOf } from '../stats.ts'
import { sendTraffic, type Traffic } from './traffic.ts'

const levels = [32, 64, 128]
const aims: Record<LogName, number> = { embedded: 200, kafka: 140 }

/**
 * Measures the sessions per second of one process, with the generator, Postgres and Kafka on the same cores: the best
 * of several concurrencies.
 */
export async function measurePeak(
  traffic: Traffic,
  { peakSessions, peakRounds }: Scale,
): Promise<Measurement> {
  const { logName } = traffic.environment
  const byLevel = new Map<number, number[]>(levels.map((level) => [level, []]))
  for (let round = 0; round < peakRounds; round++) {
    for (const [concurrency, rates] of byLevel) {
      const load = { sessions: peakSessions, concurrency, seed: `peak ${concurrency} ${round}` }
      rates.push((await sendTraffic(traffic, load)).sessionsPerSecond)
    }
  }
  const spreads = [...byLevel].map(([level, rates]) => ({ level, spread: spreadOf(rates) }))
  const [best] = spreads.sort((a, b) => b.spread.median - a.spread.median)
  if (!best) throw new Error('no level was measured')
  return {
    name: 'sessions a second of one process, generator and stores on the same cores',
    log: logName,
    unit: 'per second',
    value: best.spread,
    aim: { direction: 'at least', value: aims[logName] },
    details: {
      'best in flight': best.level,
      ...Object.fromEntries(
        spreads.map(({ level, spread }) => [`${level} in flight/s`, spread.median]),
      ),
    },
  }
}
