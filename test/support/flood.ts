import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

export interface FloodOptions {
  baseUrl: string
  publishableKey: string
  seed: string
  /** Index of the first of its sessions: no two floods of one seed begin the same. */
  first: number
}

export interface FloodAnswer {
  /** The end of the path: `sessions`, `batches`, `results`. */
  kind: string
  status: number
  ms: number
}

export interface FloodReport {
  answers: FloodAnswer[]
  begun: number
  opened: number
  finished: number
  /** The longest that the thread was late itself, which is no fault of the server's. */
  lagMs: number
  isLast: boolean
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
  const report: FloodReport = { answers: [], begun: 0, opened: 0, finished: 0, lagMs: 0, isLast: false }
  worker.on('message', ({ answers, ...rest }: FloodReport) => {
    report.answers.push(...answers)
    Object.assign(report, rest)
    if (rest.isLast) void worker.terminate()
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
