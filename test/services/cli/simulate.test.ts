import { describe, expect, test } from 'vitest'
import { observationsSchema } from '../../../schemas/observations.ts'
import { attackNames } from '../../../services/cli/simulate/generate/bots.ts'
import { headersOf } from '../../../services/cli/simulate/generate/headers.ts'
import {
  attackMix,
  defaultMix,
  planSession,
  type SessionPlan,
} from '../../../services/cli/simulate/generate/plan.ts'
import { createPacer } from '../../../services/cli/simulate/pacer.ts'
import {
  createRecording,
  sendRecorded,
  summarize,
} from '../../../services/cli/simulate/recorder.ts'
import { createReport, errorReport, formatReport } from '../../../services/cli/simulate/report.ts'
import { succeeded } from '../../../services/cli/simulate/simulate.ts'

const plans = (seed: string, count: number): SessionPlan[] =>
  Array.from({ length: count }, (_, index) => planSession(seed, index))

describe('the generator', () => {
  test('generates the same sessions byte for byte from the same seed, in any order', () => {
    const backwards = Array.from({ length: 200 }, (_, i) => planSession('seed-1', 199 - i))
    expect(backwards.reverse()).toEqual(plans('seed-1', 200))
  })

  test('generates other sessions from another seed', () => {
    const [first, second] = ['seed-1', 'seed-2'].map((seed) =>
      plans(seed, 50).map(({ batches }) => JSON.stringify(batches)),
    )
    expect(first?.filter((text) => second?.includes(text))).toEqual([])
  })

  test('generates observations that the schema accepts unchanged', () => {
    for (const { batches, closing } of plans('seed-1', 200))
      for (const observations of [...batches, closing])
        expect(observationsSchema.parse(observations)).toEqual(observations)
  })

  test('starts with a snapshot, followed by one to three batches of behavior', () => {
    for (const { batches, closing } of plans('seed-1', 200)) {
      expect(batches[0].snapshot).toBeDefined()
      expect(batches.length).toBeGreaterThanOrEqual(2)
      expect(batches.length).toBeLessThanOrEqual(4)
      const elapsed = [...batches, closing].map(({ elapsed_ms }) => elapsed_ms ?? 0)
      expect(elapsed).toEqual([...elapsed].sort((a, b) => a - b))
    }
  })

  test('follows the mix', () => {
    const all = plans('seed-1', 2000)
    const share = (is: (plan: SessionPlan) => boolean) => all.filter(is).length / all.length
    expect(share(({ client }) => client === 'web')).toBeCloseTo(0.7, 1)
    expect(share(({ client }) => client === 'ios')).toBeCloseTo(0.15, 1)
    expect(share(({ actor }) => actor !== 'human')).toBeCloseTo(defaultMix.bots, 1)
    expect(share(({ index, visitor }) => visitor !== index)).toBeCloseTo(defaultMix.returning, 1)
    expect(new Set(all.map(({ family }) => family)).size).toBeGreaterThanOrEqual(10)
  })

  test('generates only the requested clients and actors', () => {
    const mix = { clients: { web: 0, ios: 1, android: 0 }, bots: 1, returning: 0 }
    const all = Array.from({ length: 100 }, (_, index) => planSession('seed-1', index, mix))
    expect(new Set(all.map(({ client, actor }) => `${client} ${actor}`))).toEqual(
      new Set(['ios emulator']),
    )
    expect(all.every(({ index, visitor }) => index === visitor)).toBe(true)
  })

  test.each(attackNames)('makes the attack %s with one tool on one path', (attack) => {
    const all = Array.from({ length: 250 }, (_, i) => planSession('seed-1', i, attackMix(attack)))
    const kinds = all.map(({ client, actor, page }) => `${client} ${actor} ${page.url}`)
    expect(new Set(kinds).size).toBe(1)
    expect(kinds[0]).toMatch(/^web (?!human)\w+ https:.*\/\w+$/)
    expect(all.every(({ index, visitor }) => index === visitor)).toBe(true)
  })

  test('gives a returning visitor the same device', () => {
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

  test('sends headers that agree with the observations', () => {
    for (const plan of plans('seed-1', 200)) {
      const headers = headersOf(plan)
      expect(headers['User-Agent']).toBe(plan.batches[0].snapshot?.navigator.user_agent)
      expect('Origin' in headers).toBe(plan.client === 'web')
    }
  })
})

describe('the report', () => {
  const responseWith = (status: number, body: unknown) => ({
    status,
    headers: { get: () => null },
    body: Buffer.from(JSON.stringify(body)),
  })
  const none = { denied: 0, overloaded: 0, held: 0, waitedMs: 0 }

  /** Returns the report of one completed session, with these changes. */
  const reportOf = (changes: Partial<Parameters<typeof createReport>[0]> = {}) =>
    createReport({
      seed: 's',
      baseUrl: 'http://127.0.0.1:1',
      hasKey: true,
      waits: { publishable: none, secret: none },
      verification: null,
      counts: { completed: 1, failed: 0, returning: 0 },
      durationMs: 10,
      recording: createRecording(),
      ...changes,
    })

  test('has percentiles by nearest rank', () => {
    const hundred = Array.from({ length: 100 }, (_, i) => 100 - i)
    expect(summarize(hundred)).toEqual({ count: 100, p50: 50, p95: 95, p99: 99, max: 100 })
    expect(summarize([7])).toEqual({ count: 1, p50: 7, p95: 7, p99: 7, max: 7 })
    expect(summarize([])).toEqual({ count: 0, p50: 0, p95: 0, p99: 0, max: 0 })
  })

  test('counts responses, and errors by endpoint and code', async () => {
    const recording = createRecording()
    const paced = { recording, pacer: createPacer() }
    await sendRecorded({ ...paced, endpoint: 'batch' }, async () => responseWith(200, {}))
    await sendRecorded({ ...paced, endpoint: 'batch' }, async () =>
      responseWith(409, { error: { code: 'session.sequence_mismatch' } }),
    )
    await sendRecorded({ ...paced, endpoint: 'open' }, async () => responseWith(502, 'bad gateway'))
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    await expect(
      sendRecorded({ ...paced, endpoint: 'open' }, () => Promise.reject(refused)),
    ).rejects.toBe(refused)
    const counts = { completed: 10, failed: 2, returning: 1 }
    const report = reportOf({ counts, durationMs: 2000, recording })
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

  test('reports overload separately from errors, and failures as text', () => {
    const recording = createRecording()
    recording.errors.set('open ECONNREFUSED', 2)
    const counts = { completed: 1, failed: 1, returning: 0 }
    const waits = { publishable: { ...none, overloaded: 4 }, secret: none }
    const report = reportOf({ counts, waits, recording })
    expect(formatReport(report)).toContain('Overload: 4 requests got 503 and were retried')
    expect(errorReport(report)).toBe('2 errors\n  2 open ECONNREFUSED\n1 session failed')
  })

  test('names the organization whose limit to raise, if it is known', () => {
    const held = { ...none, waitedMs: 1200 }
    const report = reportOf({ waits: { publishable: { ...held, held: 3 }, secret: held } })
    const raise = (id: string) => `tidegate org limits ${id} --publishable 100000`
    expect(formatReport(report)).toContain(raise('<organization>'))
    expect(formatReport(report, 'org_1')).toContain(raise('org_1'))
    expect(formatReport(report)).not.toContain('--secret')
  })

  test('is successful only if nothing failed and every session is readable', () => {
    const verification = { readable: 0, unreadable: ['sid_1'], verdicts: {}, proven: 0 }
    const readable = { ...verification, unreadable: [] }
    const reports = [{}, { failed: 1 }, { verification }, { verification: readable }]
    const report = reportOf()
    const successes = reports.map((changes) => succeeded({ ...report, ...changes }))
    expect(successes).toEqual([true, false, false, true])
  })

  test.each([
    ['without the key', false, undefined, /no simulation key.*inconclusive/],
    ['with the key of another server', true, 0, /belongs to another server.*inconclusive/],
    ['with the key', true, 1, /proved with the simulation key/],
    ['with an unverified key', true, undefined, /carried proofs/],
  ])(
    '%s, it explains which verdicts to expect, and is successful',
    (_, hasKey, proven, expected) => {
      const readback = { readable: 1, unreadable: [], verdicts: {} }
      const verification = proven === undefined ? null : { ...readback, proven }
      const report = reportOf({ hasKey, verification })
      expect(formatReport(report)).toMatch(expected)
      expect(succeeded(report)).toBe(true)
    },
  )
})
