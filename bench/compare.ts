import { type Child, costOf } from './child.ts'
import type { Environment } from './environment.ts'
import { runLoad, type Sequence } from './load.ts'
import { type Measurement, megabytes, type Side } from './measurement.ts'
import { treeCpuMicros } from './procfs.ts'
import { interleave, type Turns } from './rounds.ts'
import { pairedRatio, spreadOf } from './stats.ts'

export interface Contender {
  child: Child
  /** Creates a round's requests before the clock starts. */
  prepare: () => Promise<Sequence[]>
}

export interface Comparison {
  name: string
  environment: Environment
  turns: Turns
  aim: number
  ours: Contender
  floor: Contender
}

/** Cost per request and throughput of a round. */
export interface Round {
  micros: number
  storeMicros: number
  perSecond: number
  peakBytes: number
}

/**
 * Returns throughput per core against the floor: the floor's CPU time per request divided by ours. Uses CPU time,
 * because the load generator and the stores share the machine's cores.
 */
export async function compare({
  name,
  environment,
  turns,
  aim,
  ours,
  floor,
}: Comparison): Promise<Measurement> {
  const run = (contender: Contender) => () => runRound(contender, environment.storePids)
  const samples = await interleave(turns, [
    { name: 'ours', run: run(ours) },
    { name: 'floor', run: run(floor) },
  ])
  const mine = samples.ours ?? []
  const theirs = samples.floor ?? []
  const value = pairedRatio(
    theirs.map(({ micros }) => micros),
    mine.map(({ micros }) => micros),
  )
  return {
    name,
    log: environment.logName,
    unit: 'ratio',
    value,
    aim: { direction: 'at least', value: aim },
    sides: { ours: sideOf(mine), floor: sideOf(theirs) },
    details: {},
  }
}

async function runRound({ child, prepare }: Contender, storePids: number[]): Promise<Round> {
  const sequences = await prepare()
  return measureRound({ child, storePids, work: () => runLoad(child.url, sequences) })
}

export interface Work {
  child: Child
  storePids: number[]
  /** Work to measure. Resolves with the number of requests and their total time. */
  work: () => Promise<{ requests: number; seconds: number }>
}

/** Runs the work and returns the resources of the child and the stores per request. */
export async function measureRound({ child, storePids, work }: Work): Promise<Round> {
  const before = storeCpu(storePids)
  const { result, cpuMicros, peakBytes } = await costOf(child, work)
  const storeMicros = storeCpu(storePids) - before
  const { requests, seconds } = result
  return {
    micros: cpuMicros / requests,
    storeMicros: storeMicros / requests,
    perSecond: requests / seconds,
    peakBytes,
  }
}

function storeCpu(pids: number[]): number {
  return pids.reduce((sum, pid) => sum + treeCpuMicros(pid), 0)
}

export const totalMicros = ({ micros, storeMicros }: Round): number => micros + storeMicros

export interface CostComparison extends Pick<Measurement, 'log' | 'aim'> {
  name: string
  ours: Round[]
  theirs: Round[]
  details?: Measurement['details']
}

/** Returns our CPU time divided by that of another program for the same work, stores included. */
export function costRatio(comparison: CostComparison): Measurement {
  const { name, log, aim, ours, theirs, details = {} } = comparison
  return {
    name: `processor time of ${name}`,
    log,
    unit: 'ratio',
    value: pairedRatio(ours.map(totalMicros), theirs.map(totalMicros)),
    ...(aim && { aim }),
    sides: { ours: sideOf(ours), floor: sideOf(theirs) },
    details,
  }
}

/** Rounds of one side of a comparison. */
export function sideOf(rounds: Round[]): Side {
  return {
    microsPerRequest: spreadOf(rounds.map(({ micros }) => micros)),
    storeMicrosPerRequest: spreadOf(rounds.map(({ storeMicros }) => storeMicros)),
    requestsPerSecond: spreadOf(rounds.map(({ perSecond }) => perSecond)),
    peakMegabytes: megabytes(Math.max(...rounds.map(({ peakBytes }) => peakBytes))),
  }
}
