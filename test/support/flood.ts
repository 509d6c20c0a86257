import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Visits } from '../../bench/open-loop.ts'
import type { Target } from '../../bench/prepare.ts'

export interface FloodOptions extends Target {
  seed: string
  /** Index of the first of its sessions: no two floods of one seed begin the same. */
  first: number
}

export interface FloodReport extends Omit<Visits, 'handOffs'> {
  begun: number
  /** The longest that the thread was late itself, which is no fault of the server's. */
  lagMs: number
}

/** Whole sessions of one organization, begun at a rate whatever is answered. */
export interface Flood {
  /** What became of them until now. */
  report: FloodReport
  setRate(perSecond: number): void
  /** Begins no more, and waits for those that were begun. */
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
