import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import type { NewRecord } from '../../../infra/log/port.ts'
import { retrySeconds, type Shed, shedShare } from '../../../services/collect/admission.ts'
import { createMemoryLog } from '../../support/memory-log.ts'
import { openAdmission } from '../../support/open-admission.ts'
import { type CollectApp, clientOf, quiet, sendAgain, startCollectApp } from './collect-app.ts'

const limits = { maxBacklogMs: 1000, maxInFlight: 100 }
const anyAges = fc.array(fc.nat(5000), { maxLength: 12 })
const anyInFlight = fc.nat(200)

describe('the share of new sessions that is shed', () => {
  test('is none where every age and the requests in flight are within their bounds', () => {
    const within = fc.array(fc.nat(limits.maxBacklogMs), { maxLength: 12 })
    fc.assert(
      fc.property(within, fc.nat(limits.maxInFlight / 4), (ages, inFlight) => {
        expect(shedShare({ ages, inFlight }, limits)).toBe(0)
      }),
    )
  })

  test('is all where every age is twice the bound, or the requests in flight are half of their limit', () => {
    const beyond = fc.array(fc.integer({ min: 2 * limits.maxBacklogMs, max: 1e9 }), { minLength: 1 })
    fc.assert(
      fc.property(beyond, anyAges, anyInFlight, (old, ages, inFlight) => {
        expect(shedShare({ ages: old, inFlight }, limits)).toBe(1)
        expect(shedShare({ ages, inFlight: limits.maxInFlight / 2 + inFlight }, limits)).toBe(1)
      }),
    )
  })

  test('never falls as anything waits longer or more is in flight, and stays between none and all', () => {
    const older = fc.array(fc.record({ age: fc.nat(5000), more: fc.nat(5000) }), { maxLength: 12 })
    fc.assert(
      fc.property(older, anyInFlight, anyInFlight, (partitions, inFlight, more) => {
        const before = shedShare({ ages: partitions.map(({ age }) => age), inFlight }, limits)
        const ages = partitions.map(({ age, more }) => age + more)
        const after = shedShare({ ages, inFlight: inFlight + more }, limits)
        expect(before).toBeGreaterThanOrEqual(0)
        expect(after).toBeGreaterThanOrEqual(before)
        expect(after).toBeLessThanOrEqual(1)
      }),
    )
  })

  test('is a twelfth where one partition of twelve stands still', () => {
    const ages = [1e9, ...Array(11).fill(0)]
    expect(shedShare({ ages, inFlight: 0 }, limits)).toBeCloseTo(1 / 12)
  })
})

test('Retry-After is 1, 2 or 3 seconds, each about as often', () => {
  const counts = new Map<number, number>()
  for (let byte = 0; byte < 256; byte++) {
    const seconds = retrySeconds(() => Buffer.from([byte]))
    counts.set(seconds, (counts.get(seconds) ?? 0) + 1)
  }
  expect([...counts.keys()].sort()).toEqual([1, 2, 3])
  expect(Math.min(...counts.values())).toBeGreaterThanOrEqual(85)
})

let app: CollectApp
afterEach(() => app?.close())

const busy = { status: 503, code: 'service.unavailable', retryable: true }
const once = { retry: { attempts: 1 } }

describe('while what waits is too old', () => {
  let ages: number[]
  let shed: Shed[]
  async function start(random = randomBytes as (size: number) => Buffer) {
    ages = []
    shed = []
    const onShed = (what: Shed) => shed.push(what)
    app = await startCollectApp({ admission: openAdmission({ readAges: () => ages, onShed, random }) })
    return app.publishable()
  }

  test('a new session gets 503 with Retry-After, and nothing of it is stored', async () => {
    const key = await start()
    ages = [2000]
    await expect(clientOf(app, key, once).open()).rejects.toMatchObject(busy)
    expect(['1', '2', '3']).toContain(app.exchanges[0]?.answer.headers['retry-after'])
    expect(app.events()).toEqual([])
    expect(shed).toEqual(['session'])
  })

  test('batches, further documents and results of running sessions go on', async () => {
    const key = await start()
    const client = clientOf(app, key)
    const { sessionId, resumeToken } = await client.open()
    ages = [1e9]
    expect((await client.sendBatch(quiet)).seq).toBe(1)
    const further = clientOf(app, key, { resumeToken })
    expect(await further.open()).toMatchObject({ sessionId, resumed: true })
    await further.sendBatch(quiet)
    expect((await client.requestResult(quiet)).sealedToken).toMatch(/^sealed:/)
    expect(shed).toEqual([])
  })

  test('the draw decides between the bound and twice of it', async () => {
    let draw = 0
    const key = await start((size) => Buffer.alloc(size, draw))
    ages = [1500]
    await expect(clientOf(app, key, once).open()).rejects.toMatchObject(busy)
    draw = 0xff
    await clientOf(app, key, once).open()
  })

  test('the reference client waits as long as it is told, and its session is opened by a later try', async () => {
    const key = await start()
    ages = [2000]
    const waits: number[] = []
    const wait = async (ms: number) => {
      waits.push(ms)
      if (waits.length === 2) ages = []
    }
    await clientOf(app, key, { retry: { attempts: 4, wait } }).open()
    const told = app.exchanges.slice(0, 2).map(({ answer }) => Number(answer.headers['retry-after']) * 1000)
    expect(waits).toEqual(told)
  })

  test('a client that gave up opens its session when it is asked again', async () => {
    const key = await start()
    const client = clientOf(app, key, once)
    ages = [2000]
    await expect(client.open()).rejects.toMatchObject(busy)
    ages = []
    await client.open()
    expect((await client.sendBatch(quiet)).seq).toBe(1)
  })
})

describe('while the process has its limit of requests in flight', () => {
  /** An app whose log takes nothing until it is told to. */
  async function startHeld() {
    const memory = createMemoryLog()
    const gate = { opened: Promise.resolve() }
    let appending = 0
    const append = async (records: NewRecord[]) => {
      appending++
      await gate.opened
      return memory.append(records)
    }
    const admission = openAdmission({ maxInFlight: 4 })
    app = await startCollectApp({ log: { append }, admission })
    const key = app.publishable()
    const clients = Array.from({ length: 5 }, () => clientOf(app, key, once))
    for (const client of clients) await client.open()
    const { promise, resolve } = Promise.withResolvers<void>()
    gate.opened = promise
    appending = 0
    const heldUp = (count: number) => expect.poll(() => appending).toBe(count)
    return { admission, key, clients, release: resolve, heldUp }
  }

  test('everything gets 503 before its body is read, and the same bytes are taken later', async () => {
    const { admission, key, clients, release, heldUp } = await startHeld()
    const last = clients.pop()
    const held = clients.map((client) => client.sendBatch(quiet))
    await heldUp(4)
    expect(admission.inFlight()).toBe(4)
    await expect(last?.sendBatch(quiet)).rejects.toMatchObject(busy)
    await expect(last?.requestResult(quiet)).rejects.toMatchObject(busy)
    await expect(clientOf(app, key, once).open()).rejects.toMatchObject(busy)
    const refused = app.inFlight('batches')
    // Who read it would say 413.
    const large = await sendAgain(app, refused, { payload: Buffer.alloc(2 * 1024 * 1024) })
    expect(large.status).toBe(503)
    release()
    await Promise.all(held)
    expect((await sendAgain(app, refused)).status).toBe(200)
    await expect.poll(() => admission.inFlight()).toBe(0)
  })

  test('new sessions are shed before running ones are', async () => {
    const { key, clients, release, heldUp } = await startHeld()
    const [one, other, third, fourth] = clients
    const held = [one, other, third].map((client) => client?.sendBatch(quiet))
    await heldUp(3)
    const opens = Array.from({ length: 40 }, () =>
      clientOf(app, key, once)
        .open()
        .then(
          () => 'opened',
          ({ status }) => status,
        ),
    )
    await expect.poll(() => app.exchanges.some(({ answer }) => answer.status === 503)).toBe(true)
    release()
    await Promise.all(held)
    expect(await Promise.all(opens)).toContain(503)
    expect((await fourth?.sendBatch(quiet))?.seq).toBe(1)
  })
})

describe('a hand-off that takes longer than its limit', () => {
  test('is 503 with Retry-After, and the same bytes get the answer without a second record', async () => {
    const decided = Promise.withResolvers<string>()
    app = await startCollectApp({ handOffTimeoutMs: 20, sealResult: () => decided.promise })
    const client = clientOf(app, app.publishable(), once)
    await client.open()
    await expect(client.requestResult(quiet)).rejects.toMatchObject(busy)
    expect(['1', '2', '3']).toContain(app.exchanges.at(-1)?.answer.headers['retry-after'])
    decided.resolve('sealed:late')
    expect((await sendAgain(app, app.inFlight('results'))).json.sealedToken).toBe('sealed:late')
    expect(app.events().filter(({ type }) => type === 'ResultRequested')).toHaveLength(1)
  })

  test('is 503 as well where the log is what takes so long', async () => {
    const memory = createMemoryLog()
    const stored = Promise.withResolvers<void>()
    const append = async (records: NewRecord[]) => {
      if (records.some(({ headers }) => headers.event_type === 'ResultRequested')) await stored.promise
      return memory.append(records)
    }
    app = await startCollectApp({ handOffTimeoutMs: 20, log: { append } })
    const client = clientOf(app, app.publishable(), once)
    await client.open()
    await expect(client.requestResult(quiet)).rejects.toMatchObject(busy)
    stored.resolve()
    expect((await sendAgain(app, app.inFlight('results'))).status).toBe(200)
    expect(memory.records.filter(({ headers }) => headers.event_type === 'ResultRequested')).toHaveLength(1)
  })
})
