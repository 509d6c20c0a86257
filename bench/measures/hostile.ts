import { deflateRawSync } from 'node:zlib'
import { noNetwork } from '../../infra/ip/network.ts'
import { createYielder } from '../../infra/timing.ts'
import { noLearnedAnswers } from '../../projections/answers/learned.ts'
import type { BatchReceived } from '../../schemas/events.ts'
import { planSession } from '../../services/cli/simulate/generate/plan.ts'
import { createDecider } from '../../services/scoring/decide.ts'
import type { Environment } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import type { Scale } from '../scale.ts'
import { pairedRatio, spreadOf } from '../stats.ts'

const limit = 512 * 1024
const counts = Array.from({ length: 6000 }, (_, i) => `"k${i}${'x'.repeat(60)}":1`).join()

/** Bodies that inflate to the maximum size, each the worst case for a different part of the parser. */
const hostile: Record<string, string> = {
  'nested without end': '['.repeat(limit),
  'very many values': `[${'0,'.repeat(limit / 2 - 2)}0]`,
  'very many names': `{"version":1,"elapsed_ms":1,"snapshot":{"media":{"counts_by_kind":{${counts}}}}}`,
  'one long number': `[${'1'.repeat(limit - 4)}]`,
  'one long text': JSON.stringify({
    version: 1,
    snapshot: { navigator: { user_agent: 'a'.repeat(limit - 100) } },
  }),
}

/** Measures how much longer a batch of hostile bodies blocks the event loop of scoring than one of honest bodies. */
export async function measureHostile(
  environment: Environment,
  scale: Scale,
): Promise<Measurement[]> {
  const honest = JSON.stringify(planSession('hostile', 0).batches[0])
  const measurements: Measurement[] = []
  for (const [name, text] of Object.entries(hostile)) {
    const turns: { bad: number[]; good: number[] } = { bad: [], good: [] }
    for (let round = 0; round < scale.hostileRounds; round++) {
      turns.bad.push(await longestTurn(text, 100))
      turns.good.push(await longestTurn(honest, 500))
    }
    measurements.push({
      name: `longest turn of the event loop while scoring, bodies ${name} over honest ones`,
      log: environment.logName,
      unit: 'ratio',
      value: pairedRatio(turns.bad, turns.good),
      aim: { direction: 'at most', value: 5 },
      details: {
        'hostile ms': spreadOf(turns.bad).median,
        'honest ms': spreadOf(turns.good).median,
      },
    })
  }
  return measurements
}

/** Returns the longest time, in milliseconds, that drafting the bodies blocked the event loop. */
async function longestTurn(text: string, bodies: number): Promise<number> {
  const payload = deflateRawSync(text)
  const events = Array.from({ length: bodies }, (_, index) => batch(index, payload))
  await new Promise((resolve) => setImmediate(resolve))
  let longest = 0
  let last = cpuMs()
  const note = () => {
    longest = Math.max(longest, cpuMs() - last)
    last = cpuMs()
  }
  const timer = setInterval(note)
  const { apply } = createDecider(new Map(), {
    learned: noLearnedAnswers,
    network: noNetwork,
    now: Date.now(),
  })
  const yieldToEventLoop = createYielder()
  for (const data of events) {
    apply({ type: 'BatchReceived', data })
    await yieldToEventLoop()
  }
  note()
  clearInterval(timer)
  return longest
}

/** Returns the CPU time of this thread, which excludes other work on the machine. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

const batch = (index: number, payload: Buffer): BatchReceived => ({
  event_id: `bat_${index}`,
  session_id: `sid_${index}`,
  organization_id: 'org_1',
  environment: 'live',
  document_id_hash: `document-${index}`,
  seq: 1,
  received_at: Date.now(),
  ip_address: '203.0.113.9',
  user_agent: '',
  body_hash: `body-${index}`,
  payload,
})
