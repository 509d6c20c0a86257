import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Visits } from '../../bench/open-loop.ts'
import type { Target } from '../../bench/prepare.ts'

export interface FloodOptions extends Target {
  seed: string
  /** Index of the first session. Floods with the same seed need different ones. */
  first: number
}

export interface FloodReport extends Omit<Visits, 'handOffs'> {
  begun: number
  /** Maximum delay caused by the thread itself rather than the server. */
  lagMs: number
}

/** Complete sessions of an organization, started at a rate regardless of responses. */
export interface Flood {
  /** Outcomes of the sessions so far. */
  report: FloodReport
  setRate(perSecond: number): void
  /** Starts no more sessions, and waits for those in flight. */
  end(): Promise<void>
}

export function startFlood(options: FloodOptions): Flood {
  const worker = new Worker(new URL('flood-worker.ts', import.meta.url), { workerData: options })
  const ended = once(worker, 'exit')
  const report: FloodReport = { answers: [], begun: 0, neverOpened: 0, unfinished: 0, lagMs: 0 }
  worker.on('message', ({ answers, ...rest }: FloodReport) => {
    report.answers.push(...answers)
    Object.assign(report, rest)
  })
  return {
    report,
    setRate: (perSecond) => worker.postMessage(perSecond),
    async end() {
      worker.postMessage(null)
      await ended
    },
  }
}
