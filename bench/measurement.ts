import type { LogName } from './environment.ts'
import type { Spread } from './stats.ts'

export type Unit = 'ratio' | 'µs' | 'ms' | 'MB' | 'per second'

/** One line of the result: a number against its aim. */
export interface Measurement {
  name: string
  log: LogName
  unit: Unit
  value: Spread
  /** undefined where a number is shown for comparison only. */
  aim?: Aim
  /** Present where Tidegate was measured against a floor or another package. */
  sides?: { ours: Side; floor: Side }
  /** Further numbers that help to read this one, by name and unit. */
  details: Record<string, number>
}

export interface Aim {
  direction: 'at least' | 'at most'
  value: number
}

/** What a request cost on one side of a comparison. */
export interface Side {
  microsPerRequest: Spread
  /** Processor time of Postgres and Kafka. */
  storeMicrosPerRequest: Spread
  requestsPerSecond: Spread
  peakMegabytes: number
}

export function aimMet({ direction, value: aim }: Aim, { median }: Spread): boolean {
  return direction === 'at least' ? median >= aim : median <= aim
}

export const megabytes = (bytes: number): number => bytes / 1024 / 1024
