import type { LogName } from './environment.ts'
import type { Spread } from './stats.ts'

export type Unit = 'ratio' | 'µs' | 'ms' | 'MB' | 'per second'

/** Result of a measurement and its target. */
export interface Measurement {
  name: string
  log: LogName
  unit: Unit
  value: Spread
  /** Undefined if the number is shown for comparison only. */
  aim?: Aim
  /** Set if Tidegate was compared with the floor or another package. */
  sides?: { ours: Side; floor: Side }
  /** Additional numbers by name and unit. */
  details: Record<string, number>
}

export interface Aim {
  direction: 'at least' | 'at most'
  value: number
}

/** Cost per request on one side of a comparison. */
export interface Side {
  microsPerRequest: Spread
  /** CPU time of Postgres and Kafka. */
  storeMicrosPerRequest: Spread
  requestsPerSecond: Spread
  peakMegabytes: number
}

export function aimMet({ direction, value: aim }: Aim, { median }: Spread): boolean {
  return direction === 'at least' ? median >= aim : median <= aim
}

export const megabytes = (bytes: number): number => bytes / 1024 / 1024
