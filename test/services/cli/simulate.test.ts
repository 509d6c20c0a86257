import { describe, expect, test } from 'vitest'
import { observationsSchema } from '../../../schemas/observations.ts'
import { headersOf } from '../../../services/cli/simulate/generate/headers.ts'
import {
  defaultMix,
  planSession,
  type SessionPlan,
} from '../../../services/cli/simulate/generate/plan.ts'
import { createPacer } from '../../../services/cli/simulate/pacer.ts'
import { createRecording, recorded, summarize } from '../../../services/cli/simulate/recorder.ts'
import { createReport, errorReport, formatReport } from '../../../services/cli/simulate/report.ts'
import { succeeded } from '../../../services/cli/simulate/simulate.ts'

const plans = (seed: string, count: number): SessionPlan[] =>
  Array.from({ length: count }, (_, index) => planSession(seed, index))

describe('the generator', () => {
  test('makes the same sessions byte for byte from the same seed, in any order', () => {
    const forwards = plans('seed-1', 200).map((plan) => JSON.stringify(plan))
    const backwards = Array.from({ length: 200 }, (_, i) =>
      JSON.stringify(planSession('seed-1', 199 - i)),
    ).reverse()
    expect(backwards).toEqual(forwards)
  })

  test('makes other sessions from another seed', () => {
    const one = plans('seed-1', 50).map((plan) => JSON.stringify(plan.batches))
    const other = plans('seed-2', 50).map((plan) => JSON.stringify(plan.batches))
    expect(one.filter((text) => other.includes(text))).toEqual([])
  })

  test('makes observations that the schema takes as they are', () => {
    for (const plan of plans('seed-1', 200)) {
      for (const observations of [...plan.batches, plan.closing]) {
        expect(observationsSchema.parse(observations)).toEqual(observations)
      }
    }
  })

  test('starts with a snapshot, goes on with one to three batches of behaviour', () => {
    for (const { batches, closing } of plans('seed-1', 200)) {
      expect(batches[0].snapshot).toBeDefined()
      expect(batches.length).toBeGreaterThanOrEqual(2)
      expect(batches.length).toBeLessThanOrEqual(4)
      const elapsed = [...batches, closing].map(({ elapsed_ms }) => elapsed_ms ?? 0)
      expect(elapsed).toEqual([...elapsed].sort((a, b) => a - b))
    }
  })

  test('keeps to the mix', () => {
    const all = plans('seed-1', 2000)
    const share = (is: (plan: SessionPlan) => boolean) => all.filter(is).length / all.length
    expect(share(({ client }) => client === 'web')).toBeCloseTo(0.7, 1)
    expect(share(({ client }) => client === 'ios')).toBeCloseTo(0.15, 1)
    expect(share(({ actor }) => actor !== 'human')).toBeCloseTo(defaultMix.bots, 1)
    expect(share(({ index, visitor }) => visitor !== index)).toBeCloseTo(defaultMix.returning, 1)
    expect(new Set(all.map(({ family }) => family)).size).toBeGreaterThanOrEqual(10)
  })

  test('sends only what is asked for', () => {
    const mix = { clients: { web: 0, ios: 1, android: 0 }, bots: 1, returning: 0 }
    const all = Array.from({ length: 100 }, (_, index) => planSession('seed-1', index, mix))
    expect(new Set(all.map(({ client, actor }) => `${client} ${actor}`))).toEqual(
      new Set(['ios emulator']),
    )
    expect(all.every(({ index, visitor }) => index === visitor)).toBe(true)
  })

  test('gives a returning visitor the device it had', () => {
    const all = plans('seed-1', 1000)
    const returning = all.filter(({ index, visitor }) => visitor !== index)
    expect(returning.length).toBeGreaterThan(0)
    for (const plan of returning) {
      const first = all[plan.visitor]
      expect(first?.visitor).toBe(plan.visitor)
      expect(plan.batches[0].snapshot).toEqual(first?.batches[0].snapshot)
      expect(plan.index - plan.visitor).toBeGreaterThan(64)
    }
  })

  test('sends the headers that agree with the observations', () => {
    for (const plan of plans('seed-1', 200)) {
      const headers = headersOf(plan)
      expect(headers['User-Agent']).toBe(plan.batches[0].snapshot?.navigator.user_agent)
      expect('Origin' in headers).toBe(plan.client === 'web')
    }
  })
})

describe('the report', () => {
  const answer = (status: number, body: unknown) => ({
    status,
    headers: { get: () => null },
    body: Buffer.from(JSON.stringify(body)),
  })
  const none = { denied: 0, overloaded: 0, held: 0, waitedMs: 0 }
  const waits = { publishable: none, secret: none }
  const input = {
    seed: 's',
    baseUrl: 'http://127.0.0.1:1',
    hasKey: true,
    waits,
    verification: null,
  }

  test('takes percentiles by nearest rank', () => {
    const hundred = Array.from({ length: 100 }, (_, i) => 100 - i)
    expect(summarize(hundred)).toEqual({ count: 100, p50: 50, p95: 95, p99: 99, max: 100 })
    expect(summarize([7])).toEqual({ count: 1, p50: 7, p95: 7, p99: 7, max: 7 })
    expect(summarize([])).toEqual({ count: 0, p50: 0, p95: 0, p99: 0, max: 0 })
  })

  test('counts what was answered, and errors by endpoint and code', async () => {
    const recording = createRecording()
    const paced = { recording, pacer: createPacer() }
    await recorded({ ...paced, endpoint: 'batch' }, async () => answer(200, {}))
    await recorded({ ...paced, endpoint: 'batch' }, async () =>
      answer(409, { error: { code: 'session.sequence_mismatch' } }),
    )
    await recorded({ ...paced, endpoint: 'open' }, async () => answer(502, 'bad gateway'))
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    await expect(
      recorded({ ...paced, endpoint: 'open' }, () => Promise.reject(refused)),
    ).rejects.toBe(refused)
    const report = createReport({
      ...input,
      counts: { completed: 10, failed: 2, returning: 1 },
      durationMs: 2000,
      recording,
    })
    expect(report).toMatchObject({
      sessionsPerSecond: 5,
      requestsPerSecond: 0.5,
      acknowledgedBatches: 1,
    })
    expect(report.latency.batch.count).toBe(1)
    expect(report.errors).toEqual([
      { endpoint: 'batch', code: 'session.sequence_mismatch', count: 1 },
      { endpoint: 'open', code: 'http_502', count: 1 },
      { endpoint: 'open', code: 'ECONNREFUSED', count: 1 },
    ])
    expect(succeeded(report)).toBe(false)
    expect(formatReport(report)).toContain('3 errors')
  })

  test('tells of overload beside the errors, and what failed where the report is JSON', () => {
    const counts = { completed: 1, failed: 1, returning: 0 }
    const recording = createRecording()
    recording.errors.set('open ECONNREFUSED', 2)
    const overloaded = { ...none, overloaded: 4 }
    const report = createReport({
      ...input,
      counts,
      waits: { publishable: overloaded, secret: none },
      durationMs: 10,
      recording,
    })
    expect(formatReport(report)).toContain('Overload: 4 requests answered with 503 and sent again')
    expect(errorReport(report)).toBe('2 errors\n  2 open ECONNREFUSED\n1 sessions failed')
  })

  test('says whose limit to raise, where it is known', () => {
    const held = { ...none, held: 3, waitedMs: 1200 }
    const counts = { completed: 1, failed: 0, returning: 0 }
    const waits = { publishable: held, secret: { ...held, held: 0 } }
    const report = createReport({
      ...input,
      counts,
      waits,
      durationMs: 10,
      recording: createRecording(),
    })
    expect(formatReport(report)).toContain(
      'tidegate org limits <organization> --publishable 100000',
    )
    expect(formatReport(report, 'org_1')).toContain(
      'tidegate org limits org_1 --publishable 100000',
    )
    expect(formatReport(report)).not.toContain('--secret')
  })

  test('succeeds only when nothing failed and everything is readable', () => {
    const counts = { completed: 1, failed: 0, returning: 0 }
    const report = createReport({ ...input, counts, durationMs: 10, recording: createRecording() })
    expect(succeeded(report)).toBe(true)
    expect(succeeded({ ...report, failed: 1 })).toBe(false)
    const verification = { readable: 0, unreadable: ['sid_1'], verdicts: {}, proven: 0 }
    expect(succeeded({ ...report, verification })).toBe(false)
    expect(succeeded({ ...report, verification: { ...verification, unreadable: [] } })).toBe(true)
  })

  describe.each([
    ['without the key', { hasKey: false }, /DATA_DIR has no simulation key.*inconclusive at best/],
    [
      'with the key of another server',
      { hasKey: true, proven: 0 },
      /not the one.*inconclusive at best/,
    ],
    ['with the key', { hasKey: true, proven: 1 }, /proved by the simulation key/],
    ['with a key that nobody looked at', { hasKey: true }, /carried proofs/],
  ])('%s', (_, { hasKey, proven }: { hasKey: boolean; proven?: number }, expected) => {
    test('says what is to be expected of verdicts, and succeeds', () => {
      const counts = { completed: 1, failed: 0, returning: 0 }
      const verification =
        proven === undefined ? null : { readable: 1, unreadable: [], verdicts: {}, proven }
      const said = { ...input, hasKey, verification }
      const report = createReport({ ...said, counts, durationMs: 10, recording: createRecording() })
      expect(formatReport(report)).toMatch(expected)
      expect(succeeded(report)).toBe(true)
    })
  })
})
