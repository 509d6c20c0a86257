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

/** Another process on the same log and claims, with an empty cache as after a restart. */
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

function expectCounted(batches: number): void {
  expect(stateOf(document.sessionId, log.records)).toMatchObject({ batches, conflicts: 0 })
}

/** Bodies of the document, all accepted by the first process, and the nonce of the next one. */
async function sendBodies(count: number) {
  const sent: RawRequest[] = []
  let { nonce } = document
  for (let seq = 1; seq <= count; seq++) {
    const request = document.body(seq, nonce)
    const { status, json } = await first.post(request)
    expect(status).toBe(200)
    sent.push(request)
    nonce = json.nonce ?? ''
  }
  return { sent, nonce }
}

describe('a process without the document in its cache', () => {
  test('rejects older bodies, also concurrent ones, naming the expected number', async () => {
    const { sent } = await sendBodies(4)
    const other = await start()
    const responses = await Promise.all(sent.map(other.post))
    expect(responses.map(outcomeOf)).toEqual([refused, refused, refused, '200'])
    const field = { expected: '5', received: '1' }
    expect(responses[0]?.json.error).toMatchObject({ details: { fields: [field] } })
    expectCounted(4)
  })

  test('rejects another body with a claimed number, and accepts the next number', async () => {
    const { nonce } = await sendBodies(1)
    const other = await start()
    expect(await outcome(other, document.body(1, document.nonce))).toBe(refused)
    expect(await outcome(other, document.body(2, nonce))).toBe('200')
    expectCounted(2)
  })

  test.each(['batches', 'results'] as const)(
    'returns the same response to a repeat of the last %s body, however much later',
    async (kind) => {
      const request = document.body(1, document.nonce, kind)
      const response = await first.post(request)
      const other = await start()
      other.now.ms += 60_000
      expect(await other.post(request)).toMatchObject({ status: 200, json: response.json })
    },
  )
})

test('a process rejects a repeat of its last body once another process has accepted a later one', async () => {
  const { sent, nonce } = await sendBodies(1)
  expect(await outcome(await start(), document.body(2, nonce))).toBe('200')
  for (const request of sent) expect(await outcome(first, request)).toBe(refused)
})

test('a body whose append failed after the claim is accepted when repeated, by any process; a different body is not', async () => {
  const [body, another] = [document.body(1, document.nonce), document.body(1, document.nonce)]
  log.setDown(true)
  expect(await outcome(first, body)).toBe('503 service.unavailable')
  log.setDown(false)
  const other = await start()
  for (const process of [first, other]) expect(await outcome(process, another)).toBe(refused)
  for (const process of [other, first]) expect(await outcome(process, body)).toBe('200')
  expectCounted(1)
})

test('a body whose append failed after the claim is one event, even if two processes append it', async () => {
  const { sent } = await sendBodies(1)
  const other = await start()
  for (const request of sent) expect(await outcome(other, request)).toBe('200')
  const bodies = log.records.filter(({ headers }) => headers.event_type === 'BatchReceived')
  const [one, again, ...more] = bodies.map((record) => codec.fromRecord(record).meta)
  expect([again, more]).toEqual([one, []])
})

test('a rejected body claims no number', async () => {
  const strict = await start({
    requireRecipients: () => Promise.reject(new ApiError('request.conflict')),
  })
  const body = document.body(1, document.nonce)
  // The tag of a batch.
  const asResult = { ...body, path: body.path.replace(/batches$/, 'results') }
  expect(await outcome(strict, asResult)).toBe('409 transport.session_reset_required')
  const result = document.body(1, document.nonce, 'results')
  expect(await outcome(strict, result)).toBe('409 request.conflict')
  expect(await outcome(first, body)).toBe('200')
})

test('during a database outage no body is acknowledged, and the same bodies are accepted afterwards', async () => {
  const { nonce } = await sendBodies(1)
  const [next, another] = [document.body(2, nonce), document.body(2, nonce)]
  const other = await start()
  claims.setDown(true)
  for (const process of [first, other])
    expect(await outcome(process, next)).toBe('503 service.unavailable')
  expectCounted(1)
  claims.setDown(false)
  expect(await outcome(first, next)).toBe('200')
  expect(await outcome(other, another)).toBe(refused)
  expectCounted(2)
})
