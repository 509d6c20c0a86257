import { afterEach, describe, expect, test } from 'vitest'
import { asId, type OrganizationId } from '../../../infra/ids.ts'
import type { NewRecord } from '../../../infra/log/port.ts'
import {
  maxAdmitted,
  nextPendingLimit,
  randomRetrySeconds,
  type ShedKind,
} from '../../../services/collect/admission.ts'
import { createMemoryLog } from '../../support/memory-log.ts'
import { openAdmission } from '../../support/open-admission.ts'
import {
  type CollectApp,
  clientOf,
  lastSent,
  quiet,
  sendAgain,
  startCollectApp,
} from './collect-app.ts'

const limits = { maxBacklogMs: 1000, maxInFlight: 100 }
const lateAges = [0, 1001]
const noAges: number[] = []
const progress = { pending: 50, decidedPerSecond: 20, sinceRefusalMs: 0, ...limits }

describe('nextPendingLimit', () => {
  test('is undefined while no record waits longer than maxBacklogMs', () => {
    expect(nextPendingLimit(undefined, { ages: [1000, 0] }, progress)).toBeUndefined()
    expect(nextPendingLimit(undefined, { ages: noAges }, progress)).toBeUndefined()
  })

  test('starts below the pending sessions, and shrinks to the number decided within maxBacklogMs', () => {
    expect(nextPendingLimit(undefined, { ages: lateAges }, progress)).toBe(40)
    expect(nextPendingLimit(40, { ages: lateAges }, { ...progress, pending: 39 })).toBeCloseTo(31.2)
    expect(nextPendingLimit(22, { ages: lateAges }, progress)).toBe(20)
    expect(nextPendingLimit(1, { ages: lateAges }, { ...progress, decidedPerSecond: 0 })).toBe(0.8)
  })

  test('grows without a backlog, and is lifted after three seconds without a refusal', () => {
    expect(nextPendingLimit(20, { ages: noAges }, progress)).toBe(21)
    expect(nextPendingLimit(0.01, { ages: noAges }, progress)).toBe(21)
    expect(nextPendingLimit(0.01, { ages: noAges }, { ...progress, decidedPerSecond: 0 })).toBe(8.4)
    expect(
      nextPendingLimit(20, { ages: noAges }, { ...progress, sinceRefusalMs: 3001 }),
    ).toBeUndefined()
    expect(nextPendingLimit(20, { ages: lateAges }, { ...progress, sinceRefusalMs: 3001 })).toBe(20)
  })
})

describe('maxAdmitted', () => {
  const totals = { requested: 1000, granted: 200 }
  const load = { limit: undefined, pending: 50, inFlight: 0, ...limits }

  test('is all requested sessions without a limit', () => {
    expect(maxAdmitted(totals, load)).toBe(1000)
  })

  test('is the granted sessions plus the room below the limit', () => {
    expect(maxAdmitted(totals, { ...load, limit: 60 })).toBe(210)
    expect(maxAdmitted(totals, { ...load, limit: 40 })).toBe(190)
  })

  test('falls from a quarter of maxInFlight requests, to zero at half of it', () => {
    const inFlight = (count: number) => maxAdmitted(totals, { ...load, inFlight: count })
    expect([25, 30, 45, 50, 100].map(inFlight)).toEqual([1000, 800, expect.closeTo(200), 0, 0])
  })
})

const one = asId('org', `org_${'1'.repeat(26)}`)
const other = asId('org', `org_${'2'.repeat(26)}`)

/** Simulates scoring with a fixed number of decisions per second. Each session has two: a first one and its result. */
function simulate({
  busyPerSecond,
  decisionsPerSecond,
}: {
  busyPerSecond: number
  decisionsPerSecond: number
}) {
  let now = 0
  const queue: { id: string; of: Outcome; at: number; isResult: boolean }[] = []
  let [age, readAt] = [0, 0]
  const admission = openAdmission({ readAges: () => [age], clock: () => now, maxBacklogMs: 750 })
  const outcome = (): Outcome => ({ requested: 0, admitted: 0, waits: [] })
  const [busy, quiet] = [outcome(), outcome()]
  function open(of: Outcome, organizationId: OrganizationId): void {
    const id = `${organizationId} ${of.requested++}`
    try {
      admission.admitSession(organizationId)
    } catch {
      return
    }
    of.admitted++
    admission.pendingSessions.add(id)
    admission.pendingSessions.expectDecision(id, id)
    queue.push({ id, of, at: now, isResult: false })
  }
  let [forBusy, forQuiet, forScoring] = [0, 0, 0]
  for (; now < 60_000; now += 10) {
    for (forBusy += busyPerSecond / 100; forBusy >= 1; forBusy--) open(busy, one)
    for (forQuiet += 1 / 100; forQuiet >= 1; forQuiet--) open(quiet, other)
    for (forScoring += decisionsPerSecond / 100; forScoring >= 1; forScoring--) {
      const next = queue.shift()
      if (!next) continue
      admission.pendingSessions.onDecided([next.id])
      if (next.isResult) next.of.waits.push({ at: next.at, ms: now - next.at })
      else queue.push({ ...next, at: now, isResult: true })
    }
    if (now - readAt >= 250) {
      age = now - (queue[0]?.at ?? now)
      readAt = now
    }
  }
  return { busy, quiet }
}

test.each([
  { times: 4, busyPerSecond: 100, decisionsPerSecond: 50 },
  { times: 8, busyPerSecond: 200, decisionsPerSecond: 50 },
  { times: 4, busyPerSecond: 40, decisionsPerSecond: 20 },
])(
  'while one organization opens $times times the sessions that can be scored, another is never refused and nearly all results are in time',
  (load) => {
    const { busy, quiet } = simulate(load)
    expect(quiet.admitted).toBe(quiet.requested)
    const inTime = (ms: number) => ms < 2000
    // Sessions that were admitted before the backlog grew have to be scored first.
    const settled = [...busy.waits, ...quiet.waits].filter(({ at }) => at > 20_000)
    expect(settled.filter(({ ms }) => !inTime(ms))).toEqual([])
    expect(busy.admitted - busy.waits.length).toBeLessThan(busy.admitted / 10)
    // Scoring is never idle either.
    expect(settled.length).toBeGreaterThan(0.8 * 40 * (load.decisionsPerSecond / 2))
  },
)

interface Outcome {
  requested: number
  admitted: number
  waits: { at: number; ms: number }[]
}

test('Retry-After is 1, 2 or 3 seconds, each about as often', () => {
  const counts = new Map<number, number>()
  for (let byte = 0; byte < 256; byte++) {
    const seconds = randomRetrySeconds(() => Buffer.from([byte]))
    counts.set(seconds, (counts.get(seconds) ?? 0) + 1)
  }
  expect([...counts.keys()].sort()).toEqual([1, 2, 3])
  expect(Math.min(...counts.values())).toBeGreaterThanOrEqual(85)
})

let app: CollectApp
afterEach(() => app?.close())

const busy = { status: 503, code: 'service.unavailable', retryable: true }
const once = { retry: { attempts: 1 } }

describe('while the backlog is too old', () => {
  let ages: number[]
  let now: number
  let shed: ShedKind[]
  async function start() {
    ages = []
    now = 0
    shed = []
    const onShed = (what: ShedKind) => shed.push(what)
    const admission = openAdmission({ readAges: () => ages, onShed, clock: () => now })
    app = await startCollectApp({ admission })
    return app.publishable()
  }
  // The age is read four times a second.
  const become = (aged: number[]) => {
    ages = aged
    now += 250
  }

  test('a new session gets 503 with Retry-After and is not stored; a later attempt succeeds', async () => {
    const key = await start()
    const client = clientOf(app, key, once)
    become([2000])
    await expect(client.open()).rejects.toMatchObject(busy)
    expect(['1', '2', '3']).toContain(app.sent[0]?.response?.headers['retry-after'])
    expect(app.log.records).toEqual([])
    expect(shed).toEqual(['session'])
    become([])
    await client.open()
    expect((await client.sendBatch(quiet)).seq).toBe(1)
  })

  test('batches, more documents and results of running sessions are accepted', async () => {
    const key = await start()
    const client = clientOf(app, key)
    const { sessionId, resumeToken } = await client.open()
    become([1e9])
    expect((await client.sendBatch(quiet)).seq).toBe(1)
    const further = clientOf(app, key, { resumeToken })
    expect(await further.open()).toMatchObject({ sessionId, resumed: true })
    await further.sendBatch(quiet)
    expect((await client.requestResult(quiet)).sealedToken).toMatch(/^sealed:/)
    expect(shed).toEqual([])
  })

  test('only the larger organization is shed while that suffices', async () => {
    const key = await start()
    const other = app.publishable({ organizationId: 'org_00000000000000000000000002' })
    for (let i = 0; i < 20; i++) await clientOf(app, key).open()
    become([1100])
    await expect(clientOf(app, key, once).open()).rejects.toMatchObject(busy)
    await clientOf(app, other, once).open()
  })
})

/** A log whose appends wait while it is held. */
function createHeldLog(isHeld: (record: NewRecord) => boolean = () => true) {
  const memory = createMemoryLog()
  let gate = Promise.withResolvers<void>()
  gate.resolve()
  let appending = 0
  return {
    records: memory.records,
    async append(records: NewRecord[]) {
      if (records.some(isHeld)) {
        appending++
        await gate.promise
      }
      return memory.append(records)
    },
    hold() {
      gate = Promise.withResolvers()
      appending = 0
    },
    release: () => gate.resolve(),
    heldUp: (count: number) => expect.poll(() => appending).toBe(count),
  }
}

describe('at the limit of requests in flight', () => {
  /** Five clients with a session each, of an app that allows four requests in flight. */
  async function startHeld() {
    const log = createHeldLog()
    const admission = openAdmission({ maxInFlight: 4 })
    app = await startCollectApp({ log, admission })
    const key = app.publishable()
    const newClient = () => clientOf(app, key, once)
    const clients = Array.from({ length: 5 }, newClient)
    for (const client of clients) await client.open()
    log.hold()
    return { admission, clients, log, newClient }
  }

  test('every request gets 503 before its body is read, and the same bytes are accepted later', async () => {
    const { admission, clients, log, newClient } = await startHeld()
    const last = clients.pop()
    const held = clients.map((client) => client.sendBatch(quiet))
    await log.heldUp(4)
    expect(admission.inFlight()).toBe(4)
    await expect(last?.requestResult(quiet)).rejects.toMatchObject(busy)
    await expect(newClient().open()).rejects.toMatchObject(busy)
    await expect(last?.sendBatch(quiet)).rejects.toMatchObject(busy)
    const refused = lastSent(app, 'batches')
    // Would be 413 if the body were read.
    const large = await sendAgain(app, refused, { payload: Buffer.alloc(2 * 1024 * 1024) })
    expect(large.status).toBe(503)
    log.release()
    await Promise.all(held)
    expect((await sendAgain(app, refused)).status).toBe(200)
    await expect.poll(() => admission.inFlight()).toBe(0)
  })

  test('new sessions are shed before running ones are', async () => {
    const { clients, log, newClient } = await startHeld()
    const held = clients.slice(0, 3).map((client) => client.sendBatch(quiet))
    await log.heldUp(3)
    const opens = Promise.allSettled(Array.from({ length: 40 }, () => newClient().open()))
    await expect.poll(() => app.sent.some(({ response }) => response?.status === 503)).toBe(true)
    log.release()
    await Promise.all(held)
    expect(await opens).toContainEqual(expect.objectContaining({ status: 'rejected' }))
    expect((await clients[3]?.sendBatch(quiet))?.seq).toBe(1)
  })
})

test.each(['decision', 'log'])(
  'a hand-off whose %s takes too long gets 503 with Retry-After, and the same bytes get the result later',
  async (slow) => {
    const decided = Promise.withResolvers<string>()
    const log = createHeldLog(({ headers }) => headers.event_type === 'ResultRequested')
    const sealResult = () => decided.promise
    app = await startCollectApp({ handOffTimeoutMs: 20, log, sealResult })
    const client = clientOf(app, app.publishable(), once)
    await client.open()
    if (slow === 'log') log.hold()
    await expect(client.requestResult(quiet)).rejects.toMatchObject(busy)
    const refused = lastSent(app, 'results')
    expect(['1', '2', '3']).toContain(refused.response?.headers['retry-after'])
    log.release()
    decided.resolve('sealed:late')
    expect((await sendAgain(app, refused)).json.sealedToken).toBe('sealed:late')
    const requests = log.records.filter(({ headers }) => headers.event_type === 'ResultRequested')
    expect(requests).toHaveLength(1)
  },
)
