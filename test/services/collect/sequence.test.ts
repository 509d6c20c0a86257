import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { CollectDeps } from '../../../services/collect/routes.ts'
import {
  type CollectProcess,
  startCollectProcess,
  stateOf,
} from '../../support/collect-processes.ts'
import { createMemoryClaims, type MemoryClaims } from '../../support/memory-claims.ts'
import { createMemoryLog, type MemoryLog } from '../../support/memory-log.ts'
import {
  openRawDocument,
  outcomeOf,
  type RawAnswer,
  type RawDocument,
  type RawRequest,
} from '../../support/sequence-race.ts'
import { codec } from './collect-app.ts'

const refused = '409 session.sequence_mismatch'

let log: MemoryLog
let claims: MemoryClaims
let running: CollectProcess[]
let first: CollectProcess
let document: RawDocument

/** One more process on the same log and claims, as a restarted one: it remembers nothing. */
async function start(changes: Partial<CollectDeps> = {}): Promise<CollectProcess> {
  const process = await startCollectProcess({ log, claims: claims.open(), ...changes })
  running.push(process)
  return process
}

beforeEach(async () => {
  log = createMemoryLog()
  claims = createMemoryClaims()
  running = []
  first = await start()
  document = await openRawDocument(first.post, first.publishableKey)
})
afterEach(() => Promise.all(running.map((process) => process.close())))

const outcome = async (process: CollectProcess, request: RawRequest) =>
  outcomeOf(await process.post(request))
const counted = () => {
  const { batches, conflicts } = stateOf(document.sessionId, log.records)
  return { batches, conflicts }
}

interface Sent {
  request: RawRequest
  answer: RawAnswer
  /** For the body after it. */
  nonce: string
}

/** The document's first bodies, all taken by the first process. */
async function sendBodies(count: number): Promise<[Sent, ...Sent[]]> {
  const one = await sendBody(1, document.nonce)
  const sent: [Sent, ...Sent[]] = [one]
  for (let seq = 2; seq <= count; seq++) sent.push(await sendBody(seq, sent.at(-1)?.nonce ?? ''))
  return sent
}

async function sendBody(seq: number, nonce: string): Promise<Sent> {
  const request = document.body(seq, nonce)
  const answer = await first.post(request)
  expect(answer.status).toBe(200)
  return { request, answer, nonce: answer.json.nonce ?? '' }
}

describe('a process that does not remember the document', () => {
  test('refuses an older body, and says which number is expected', async () => {
    const [older] = await sendBodies(2)
    const answer = await (await start()).post(older.request)
    expect(outcomeOf(answer)).toBe(refused)
    expect(answer.json.error).toMatchObject({
      details: { fields: [{ expected: '3', received: '1' }] },
    })
    expect(counted()).toEqual({ batches: 2, conflicts: 0 })
  })

  test('refuses another body under a number that was taken', async () => {
    await sendBodies(1)
    expect(await outcome(await start(), document.body(1, document.nonce))).toBe(refused)
    expect(counted()).toEqual({ batches: 1, conflicts: 0 })
  })

  test('answers the last body as before, to the byte, however much later', async () => {
    const [{ request, answer }] = await sendBodies(1)
    const other = await start()
    other.now.ms += 60_000
    const { status, json } = await other.post(request)
    expect([status, json]).toEqual([200, answer.json])
    expect(counted()).toEqual({ batches: 1, conflicts: 0 })
  })

  test('takes the next body', async () => {
    const [{ nonce }] = await sendBodies(1)
    expect(await outcome(await start(), document.body(2, nonce))).toBe('200')
    expect(counted()).toEqual({ batches: 2, conflicts: 0 })
  })
})

test('a process refuses what was the last body that it saw, once another process took a later one', async () => {
  const [one] = await sendBodies(1)
  const other = await start()
  expect(await outcome(other, document.body(2, one.nonce))).toBe('200')
  expect(await outcome(first, one.request)).toBe(refused)
})

test('older bodies that come at once to a process that remembers none of them are all refused', async () => {
  const sent = await sendBodies(4)
  const other = await start()
  const outcomes = await Promise.all(sent.map(({ request }) => outcome(other, request)))
  expect(outcomes).toEqual([refused, refused, refused, '200'])
})

describe('a body that took its number and did not get to the log', () => {
  test('goes through when it comes again, to any process; another one does not', async () => {
    const [body, another] = [document.body(1, document.nonce), document.body(1, document.nonce)]
    log.setDown(true)
    expect(await outcome(first, body)).toBe('503 service.unavailable')
    log.setDown(false)
    const other = await start()
    expect(await outcome(first, another)).toBe(refused)
    expect(await outcome(other, another)).toBe(refused)
    expect(await outcome(other, body)).toBe('200')
    expect(await outcome(first, body)).toBe('200')
    expect(counted()).toEqual({ batches: 1, conflicts: 0 })
  })

  test('is one event, even when both processes append it', async () => {
    const [one] = await sendBodies(1)
    expect(await outcome(await start(), one.request)).toBe('200')
    const bodies = log.records.filter(({ headers }) => headers.event_type === 'BatchReceived')
    const ids = bodies.map((record) => codec.fromRecord(record).meta)
    expect(ids).toHaveLength(2)
    expect(ids[1]).toEqual(ids[0])
  })
})

test('what is refused before it counts takes no number', async () => {
  const strict = await start({
    checkRecipients: () => Promise.reject(new ApiError('request.conflict')),
  })
  const body = document.body(1, document.nonce)
  const asResult = await strict.post({ ...body, path: body.path.replace(/batches$/, 'results') })
  // The tag is that of a batch.
  expect(outcomeOf(asResult)).toBe('409 transport.session_reset_required')
  const result = document.body(1, document.nonce, 'results')
  expect(await outcome(strict, result)).toBe('409 request.conflict')
  expect(await outcome(first, body)).toBe('200')
})

test('a result that is asked for again asks for the same decision', async () => {
  const result = document.body(1, document.nonce, 'results')
  const answer = await first.post(result)
  expect(await (await start()).post(result)).toMatchObject({ status: 200, json: answer.json })
})

test('while the database is away no body is acknowledged, and the same ones are taken when it is back', async () => {
  const [{ nonce }] = await sendBodies(1)
  const [next, another] = [document.body(2, nonce), document.body(2, nonce)]
  claims.setDown(true)
  for (const process of [first, await start()])
    expect(await outcome(process, next)).toBe('503 service.unavailable')
  expect(counted()).toEqual({ batches: 1, conflicts: 0 })
  claims.setDown(false)
  expect(await outcome(first, next)).toBe('200')
  expect(await outcome(await start(), another)).toBe(refused)
  expect(counted()).toEqual({ batches: 2, conflicts: 0 })
})
