import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { connect } from '../../bench/load.ts'
import { type Visits, visit } from '../../bench/open-loop.ts'
import { planSession, webOnlyMix } from '../../services/cli/simulate/generate/plan.ts'
import type { FloodOptions, FloodReport } from './flood.ts'

// A separate thread starts the sessions, so that other threads do not delay it.

const { seed, first, ...target }: FloodOptions = workerData
const seen: Visits = { answers: [], handOffs: [], neverOpened: 0, unfinished: 0 }
// A new visitor gets a new connection unless one is idle.
const connections = connect(target.baseUrl, 4096)
const lag = monitorEventLoopDelay({ resolution: 10 })
let begun = 0
let perSecond = 0
let isOver = false

parentPort?.on('message', (told: number | null) => {
  if (told === null) isOver = true
  else perSecond = told
})

/** Runs an open loop like the bench, at a changeable rate. */
async function begin(): Promise<void> {
  const visits: Promise<void>[] = []
  let [due, last] = [0, performance.now()]
  lag.enable()
  const reporting = setInterval(report, 250)
  while (!isOver) {
    const now = performance.now()
    due += ((now - last) / 1000) * perSecond
    last = now
    for (; due >= 1; due--)
      visits.push(
        visit(planSession(seed, first + begun++, webOnlyMix), { ...target, connections, seen }),
      )
    await delay(20)
  }
  await Promise.all(visits)
  clearInterval(reporting)
  connections.close()
  report()
}

function report(): void {
  const { answers, neverOpened, unfinished } = seen
  const message: FloodReport = {
    begun,
    neverOpened,
    unfinished,
    lagMs: lag.max / 1e6,
    answers: answers.splice(0),
  }
  parentPort?.postMessage(message)
}

await begin()
parentPort?.close()
