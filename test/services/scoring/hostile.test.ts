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

/** Bodies that inflate to so many bytes, each as bad as it can be for another part of what reads it. */
const hostile: [string, (length: number) => string][] = [
  ['nested without end', (length) => '['.repeat(length)],
  ['of very many values', (length) => `[${'0,'.repeat(length / 2 - 2)}0]`],
  [
    'of very many names',
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

/** Of this thread, so that whatever else the machine does does not count. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The cost of deciding ten sessions with such a body; the least of some runs, as others collect garbage. */
function cost(text: string): number {
  const events = bodies(10, deflateRawSync(text))
  const runs = Array.from({ length: 5 }, () => {
    const before = cpuMs()
    decisionsAfter(events)
    return cpuMs() - before
  })
  return Math.min(...runs)
}

// That the event loop is not held up for long is measured by the bench.
describe.each(hostile)('bodies %s', (_, bodyOf) => {
  it('cost in proportion to their length at most', () => {
    cost(bodyOf(limit / 16))
    // With sixteen times the length: sixteen times the cost if it grows with the length, 256 times with its square. The
    // clock ticks every few milliseconds.
    expect(cost(bodyOf(limit))).toBeLessThan(64 * Math.max(cost(bodyOf(limit / 16)), 1) + 20)
  })
})

it('other work has its turn between bodies, however many there are', async () => {
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
  // Between two turns there are 20 ms of work at most, and the piece that exceeds them.
  const total = pieces.reduce((sum, ms) => sum + ms, 0)
  expect(turns).toBeGreaterThanOrEqual(Math.floor(total / (20 + Math.max(...pieces))) - 1)
})

/** What takes the place of texts and numbers of a body, one at a time. */
const odd: [string, (value: unknown) => unknown][] = [
  ['texts outside of ASCII', ofText((length) => 'é'.repeat(length))],
  ['surrogates without their half', ofText((length) => '\ud800'.repeat(length))],
  ['pairs of surrogates', ofText((length) => '😀'.repeat(Math.ceil(length / 2)))],
  ['zero characters', ofText((length) => '\0'.repeat(length))],
  ['no text', ofText(() => '')],
  ...[0, -1, 0.5, 2 ** 53, 1.7e308, 5e-324].map((number): (typeof odd)[number] => [
    `the number ${number}`,
    (value) => (typeof value === 'number' ? number : value),
  ]),
]

function ofText(replace: (length: number) => string): (value: unknown) => unknown {
  return (value) => (typeof value === 'string' ? replace(value.length) : value)
}

/** The same value with one of its members replaced, for each that becomes another. */
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

it.each(odd)('%s in any member leave the session its decision', (_, replace) => {
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
