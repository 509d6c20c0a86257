import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { maxMarked } from '../../../services/marks/decide.ts'
import { visitorLink } from '../../support/session-scored.ts'
import { expectError, expectShape } from '../readback/contract.ts'
import { id, type Readback, startReadback } from '../readback/support.ts'

let readback: Readback
const sid = (n: number) => id('sid', n)

beforeAll(async () => {
  readback = await startReadback()
  const sessions = [1, 2, 3, 4, 5].map((n) => ({
    session_id: sid(n),
    event_id: id('evt', n),
    evaluated_at: 1000 + n,
    visitor: visitorLink({ id: id('vid', n < 4 ? 1 : 2) }),
  }))
  const elsewhere = { session_id: sid(9), event_id: id('evt', 9), environment: 'test' as const }
  await readback.score(...sessions, elsewhere)
})
afterAll(() => readback.stop())

const mark = (body: object, headers: Record<string, string> = {}) =>
  readback.send({ url: '/v1/marks', method: 'POST', body, headers })
const remove = (markId: string, key?: string) =>
  readback.send({ url: `/v1/marks/${markId}`, method: 'DELETE', ...(key && { key }) })

async function eventCount(): Promise<number> {
  const ends = await readback.log.endPositions('tidegate.sessions.v1')
  return ends.reduce((sum, { offset }) => sum + offset, 0)
}

/** Of the detail, after the list has said the same. */
async function markOf(n: number) {
  const { body } = await readback.send({ url: `/v1/sessions/${sid(n)}` })
  const list = await readback.send({ url: '/v1/sessions' })
  expectShape('SessionDetailResponse', body)
  expectShape('SessionListResponse', list.body)
  const row = list.body.data.find((one: { id: string }) => one.id === sid(n))
  expect(row.mark).toEqual(body.data.mark)
  return body.data.mark
}

test('sessions are marked, and each of them shows it; a deleted mark gives place to the one before', async () => {
  const { status, body } = await mark({
    label: 'bot',
    reason: 'charged_back',
    session_ids: [sid(1), sid(2)],
  })
  const { id: markId, created_at } = body.data
  expect(status).toBe(201)
  expect(body.data).toEqual({
    object: 'mark',
    id: expect.stringMatching(/^mrk_[0-9a-z]{26}$/),
    label: 'bot',
    reason: 'charged_back',
    session_count: 2,
    created_at: expect.any(String),
  })
  const shown = { id: markId, label: 'bot', reason: 'charged_back', marked_at: created_at }
  expect([await markOf(1), await markOf(2), await markOf(3)]).toEqual([shown, shown, null])
  const newer = await mark({ label: 'legitimate', visitor_id: id('vid', 1) })
  expect(newer.body.data).toMatchObject({ label: 'legitimate', reason: null, session_count: 3 })
  expect((await markOf(1)).id).toBe(newer.body.data.id)
  const removed = await remove(newer.body.data.id)
  expect([removed.status, removed.body.data]).toEqual([200, newer.body.data])
  expect([await markOf(1), await markOf(3)]).toEqual([shown, null])
  expectError(await remove(newer.body.data.id), 'request.not_found')
})

test('a user stands for the sessions that are its now', async () => {
  for (const client_user_id of ['first', 'Ada'])
    await readback.send({
      url: `/v1/sessions/${sid(4)}`,
      method: 'PATCH',
      body: { client_user_id },
    })
  expect((await mark({ label: 'fraud', client_user_id: 'Ada' })).body.data.session_count).toBe(1)
  expect((await markOf(4)).label).toBe('fraud')
  expectError(await mark({ label: 'fraud', client_user_id: 'first' }), 'request.validation_failed')
})

describe('nothing is marked', () => {
  const named = { session_ids: [sid(5)] }
  const many = Array.from({ length: maxMarked + 1 }, (_, n) => sid(n))
  test.each<[string, object, string]>([
    ['without a label', named, 'label'],
    ['with another label', { label: 'other', ...named }, 'label'],
    ['with a reason of many words', { label: 'bot', reason: 'Ada complained', ...named }, 'reason'],
    ['with too long a reason', { label: 'bot', reason: 'x'.repeat(65), ...named }, 'reason'],
    ['with nothing named', { label: 'bot' }, 'session_ids'],
    ['with two ways of naming', { label: 'bot', ...named, visitor_id: id('vid', 2) }, 'visitor_id'],
    [
      'with all three ways',
      { label: 'bot', ...named, client_user_id: 'a', visitor_id: id('vid', 2) },
      'visitor_id',
    ],
    ['with no session', { label: 'bot', session_ids: [] }, 'session_ids'],
    ['with a session twice', { label: 'bot', session_ids: [sid(5), sid(5)] }, 'session_ids'],
    ['with too many sessions', { label: 'bot', session_ids: many }, 'session_ids'],
    ['with what is no id', { label: 'bot', session_ids: [sid(5), 'sid_1'] }, 'session_ids.1'],
    ['with an unknown session', { label: 'bot', session_ids: [sid(5), sid(77)] }, 'session_ids'],
    [
      'with a session of another environment',
      { label: 'bot', session_ids: [sid(5), sid(9)] },
      'session_ids',
    ],
    ['with an unknown visitor', { label: 'bot', visitor_id: id('vid', 77) }, 'visitor_id'],
    ['with a user that cannot be', { label: 'bot', client_user_id: 'a\u0000b' }, 'client_user_id'],
    ['with a member more', { label: 'bot', ...named, note: 'x' }, 'note'],
  ])('%s', async (_, body, name) => {
    const before = await eventCount()
    const response = await mark(body)
    expectError(response, 'request.validation_failed')
    expect(response.body.error.details.fields[0].name).toBe(name)
    expect([await eventCount(), await markOf(5)]).toEqual([before, null])
  })

  test('by a key of another organization or environment, or one that may not', async () => {
    const { body } = await mark({ label: 'bot', session_ids: [sid(2)] })
    const markId = body.data.id
    const others = [
      readback.key({ environment: 'test' }),
      readback.key({ organizationId: id('org', 2) }),
    ]
    for (const key of others) {
      const response = await readback.send({
        url: '/v1/marks',
        method: 'POST',
        key,
        body: { label: 'human', session_ids: [sid(2)] },
      })
      expectError(response, 'request.validation_failed')
      expectError(await remove(markId, key), 'request.not_found')
    }
    expectError(
      await remove(markId, readback.key({ scopes: ['sessions:update'] })),
      'auth.insufficient_scope',
    )
    expect((await markOf(2)).id).toBe(markId)
    for (const unknown of ['mrk_1', id('mrk', 77), 'x'])
      expectError(await remove(unknown), 'request.not_found')
  })
})

test('a repetition with the same key is the same mark', async () => {
  const again = () => mark({ label: 'human', session_ids: [sid(5)] }, { 'idempotency-key': 'once' })
  const first = await again()
  const before = await eventCount()
  const second = await again()
  expect([first.status, second.status, second.headers['idempotent-replayed']]).toEqual([
    201,
    201,
    'true',
  ])
  expect([second.body, await eventCount()]).toEqual([first.body, before])
})

test('a mark is written for the sessions that it changes', async () => {
  const body = { label: 'human', reason: 'called' }
  const first = await mark({ ...body, session_ids: [sid(3)] })
  const before = await eventCount()
  const second = await mark({ ...body, session_ids: [sid(3), sid(5)] })
  expect(await eventCount()).toBe(before + 1)
  expect(second.body.data.session_count).toBe(1)
  expect([(await markOf(3)).id, (await markOf(5)).id]).toEqual([
    first.body.data.id,
    second.body.data.id,
  ])
  const third = await mark({ ...body, session_ids: [sid(3), sid(5)] })
  expect([third.status, third.body.data, await eventCount()]).toEqual([
    201,
    second.body.data,
    before + 1,
  ])
})

test('a mark is on as many sessions as may be, and of two that delete it at once one finds it', async () => {
  const sessions = Array.from({ length: maxMarked }, (_, n) => 10_000 + n)
  await readback.score(
    ...sessions.map((n) => ({
      session_id: sid(n),
      event_id: id('evt', n),
      visitor: visitorLink({ id: id('vid', 3) }),
    })),
  )
  const { body } = await mark({ label: 'bot', session_ids: sessions.map(sid) })
  expect(body.data.session_count).toBe(maxMarked)
  const both = await Promise.all([remove(body.data.id), remove(body.data.id)])
  expect(both.map(({ status }) => status).toSorted()).toEqual([200, 404])
  await readback.score({
    session_id: sid(20_000),
    event_id: id('evt', 20_000),
    visitor: visitorLink({ id: id('vid', 3) }),
  })
  const response = await mark({ label: 'bot', visitor_id: id('vid', 3) })
  expectError(response, 'request.validation_failed')
  expect(response.body.error.details.fields[0]).toMatchObject({
    name: 'visitor_id',
    issue: 'too_large',
  })
})

test('a repeated mark writes no event, and answers the mark that is there', async () => {
  const body = { label: 'bot', reason: 'repeated', session_ids: [sid(3), sid(5)] }
  const first = await mark(body)
  const before = await eventCount()
  const second = await mark(body)
  expect([second.status, second.body.data]).toEqual([201, first.body.data])
  expect(await eventCount()).toBe(before)
  // Another reason makes it another mark.
  expect((await mark({ ...body, reason: 'another' })).body.data.id).not.toBe(first.body.data.id)
})
