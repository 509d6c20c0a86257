import { deflateRawSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import { createBreather } from '../../../infra/timing.ts'
import { startDrafting } from '../../../services/scoring/decide.ts'
import { batch, startedAt, testSession } from './support/events.ts'

const limit = 512 * 1024
const keys = Array.from({ length: 6000 }, (_, i) => `"k${i}${'x'.repeat(60)}":1`).join()

/** Of this thread, so that whatever else the machine does does not count. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The most that this thread computed without a turn of the event loop while it drafted the bodies, milliseconds. */
async function longestTurn(text: string, bodies: number): Promise<number> {
  const payload = deflateRawSync(text)
  const events = Array.from({ length: bodies }, (_, i) => batch(testSession(`hostile-${i}`), { payload }))
  await new Promise((resolve) => setImmediate(resolve))
  let longest = 0
  let last = cpuMs()
  const note = () => {
    longest = Math.max(longest, cpuMs() - last)
    last = cpuMs()
  }
  const timer = setInterval(note)
  const { apply } = startDrafting({ known: new Map(), network: noNetwork, now: startedAt })
  const breathe = createBreather()
  for (const event of events) {
    apply(event)
    await breathe()
  }
  note()
  clearInterval(timer)
  return longest
}

/** The least of some runs: a garbage collection only ever makes one longer. */
async function turn(text: string, bodies: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let run = 0; run < 3; run++) least = Math.min(least, await longestTurn(text, bodies))
  return least
}

it.each([
  ['nested without end', '['.repeat(limit)],
  ['of very many values', `[${'0,'.repeat(limit / 2 - 2)}0]`],
  ['of very many names', `{"version":1,"elapsed_ms":1,"snapshot":{"media":{"counts_by_kind":{${keys}}}}}`],
  ['that are one long number', `[${'1'.repeat(limit - 4)}]`],
  [
    'that are one long text',
    JSON.stringify({ version: 1, snapshot: { navigator: { user_agent: 'a'.repeat(limit - 100) } } }),
  ],
])('a batch of bodies %s holds up the event loop hardly longer than an honest one', async (_, text) => {
  const honest = { version: 1, elapsed_ms: 1, snapshot: testSession('honest').client.snapshot }
  expect(await turn(text, 100)).toBeLessThan(5 * (await turn(JSON.stringify(honest), 500)))
})
