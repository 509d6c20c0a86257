import { deflateRawSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { createBreather } from '../../../infra/breather.ts'
import { startDrafting } from '../../../services/scoring/drafts.ts'
import { noNetwork } from '../../../services/scoring/network.ts'
import { batch, startedAt, testSession } from './support/events.ts'

const bodies = 150
const limit = 512 * 1024
const keys = Array.from({ length: 6000 }, (_, i) => `"k${i}${'x'.repeat(60)}":1`).join()

/** The longest time that the event loop did not turn while a batch of such bodies is scored, in milliseconds. */
async function longestDelay(observations: object | string): Promise<number> {
  const text = typeof observations === 'string' ? observations : JSON.stringify(observations)
  const payload = deflateRawSync(text)
  const events = Array.from({ length: bodies }, (_, i) => batch(testSession(`hostile-${i}`), { payload }))
  let longest = 0
  let last = performance.now()
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
  })
  const { take } = startDrafting({ known: new Map(), network: noNetwork, now: startedAt })
  const breathe = createBreather()
  for (const event of events) {
    take(event)
    await breathe()
  }
  await new Promise((resolve) => setTimeout(resolve, 2))
  clearInterval(timer)
  return longest
}

/** The least of three: what the machine does meanwhile only ever makes it longer. */
async function delay(observations: object | string): Promise<number> {
  const runs = [0, 1, 2].map(() => () => longestDelay(observations))
  const times: number[] = []
  for (const run of runs) times.push(await run())
  return Math.min(...times)
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
  expect(await delay(text)).toBeLessThan(5 * (await delay(honest)))
})
