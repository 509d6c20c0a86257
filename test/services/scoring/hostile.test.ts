import { deflateRawSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { createYielder } from '../../../infra/timing.ts'
import { behaviorOf } from '../../../services/cli/simulate/generate/behavior.ts'
import { createSeededRandom } from '../../../services/cli/simulate/generate/random.ts'
import { batch, opened, testSession } from './support/events.ts'
import { decisionsAfter } from './support/sessions.ts'
import { desktopChrome } from './support/snapshots.ts'

const limit = 512 * 1024
const bodies = (count: number, payload: Buffer) =>
  Array.from({ length: count }, (_, i) => batch(testSession(`hostile-${i}`), { payload }))
const names = (length: number) =>
  Array.from({ length: Math.floor(length / 80) }, (_, i) => `"k${i}${'x'.repeat(60)}":1`).join()

/** Bodies that inflate to this many bytes, each the worst case for a different part of the parser. */
const hostile: [string, (length: number) => string][] = [
  ['with endless nesting', (length) => '['.repeat(length)],
  ['with very many values', (length) => `[${'0,'.repeat(length / 2 - 2)}0]`],
  [
    'with very many names',
    (length) =>
      `{"version":1,"elapsed_ms":1,"snapshot":{"media":{"counts_by_kind":{${names(length)}}}}}`,
  ],
  ['that are one long number', (length) => `[${'1'.repeat(length - 4)}]`],
  [
    'that are one long text',
    (length) =>
      JSON.stringify({
        version: 1,
        snapshot: { navigator: { user_agent: 'a'.repeat(length - 100) } },
      }),
  ],
]

/** Returns the CPU time of this thread, so that other processes don't count. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Returns the cost of deciding ten sessions with this body: the minimum of five runs, because garbage collection slows some. */
function cost(text: string): number {
  const events = bodies(10, deflateRawSync(text))
  const runs = Array.from({ length: 5 }, () => {
    const before = cpuMs()
    decisionsAfter(events)
    return cpuMs() - before
  })
  return Math.min(...runs)
}

// The bench measures for how long the event loop is blocked.
describe.each(hostile)('bodies %s', (_, bodyOf) => {
  it('cost at most linear time', () => {
    cost(bodyOf(limit / 16))
    // Sixteen times the length costs sixteen times as much if the cost is linear, and 256 times if it is quadratic. The
    // clock ticks every few milliseconds.
    expect(cost(bodyOf(limit))).toBeLessThan(64 * Math.max(cost(bodyOf(limit / 16)), 1) + 20)
  })
})

it('yields to the event loop between bodies', async () => {
  const events = bodies(40, deflateRawSync(`[${'0,'.repeat(limit / 2 - 2)}0]`))
  const yieldToEventLoop = createYielder()
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const pieces: number[] = []
  for (const event of events) {
    const started = performance.now()
    decisionsAfter([event])
    pieces.push(performance.now() - started)
    await yieldToEventLoop()
  }
  isOver = true
  // There are at most 20 ms of work between two turns, plus the body that exceeds them.
  const total = pieces.reduce((sum, ms) => sum + ms, 0)
  expect(turns).toBeGreaterThanOrEqual(Math.floor(total / (20 + Math.max(...pieces))) - 1)
})

/** Replacements for the texts and numbers of a body, one at a time. */
const unusual: [string, (value: unknown) => unknown][] = [
  ['non-ASCII texts', ofText((length) => 'é'.repeat(length))],
  ['lone surrogates', ofText((length) => '\ud800'.repeat(length))],
  ['surrogate pairs', ofText((length) => '😀'.repeat(Math.ceil(length / 2)))],
  ['NUL characters', ofText((length) => '\0'.repeat(length))],
  ['empty texts', ofText(() => '')],
  ...[0, -1, 0.5, 2 ** 53, 1.7e308, 5e-324].map((number): (typeof unusual)[number] => [
    `the number ${number}`,
    (value) => (typeof value === 'number' ? number : value),
  ]),
]

function ofText(replace: (length: number) => string): (value: unknown) => unknown {
  return (value) => (typeof value === 'string' ? replace(value.length) : value)
}

/** Yields copies of the value, each with one member replaced. */
function* withOne(value: unknown, replace: (value: unknown) => unknown): Generator<unknown> {
  const replaced = replace(value)
  if (replaced !== value) yield replaced
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value))
    for (const changed of withOne(member, replace))
      yield Array.isArray(value) ? value.with(Number(name), changed) : { ...value, [name]: changed }
}

const behavior = behaviorOf({
  actor: 'human',
  mobile: false,
  durationMs: 9000,
  random: createSeededRandom('odd members'),
})
const observations = { snapshot: desktopChrome.snapshot, behavior }

it.each(unusual)('%s in any member do not prevent a decision', (_, replace) => {
  const session = testSession('odd-members')
  let sent = 0
  for (const body of withOne(observations, replace)) {
    const payload = deflateRawSync(JSON.stringify({ version: 1, elapsed_ms: 900, ...Object(body) }))
    const { decisions } = decisionsAfter([...opened(session), batch(session, { payload })])
    expect(decisions).toHaveLength(1)
    sent++
  }
  expect(sent).toBeGreaterThan(40)
})
