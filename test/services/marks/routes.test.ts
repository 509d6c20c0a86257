import { describe, expect, test } from 'vitest'
import { maxSessionsPerMark } from '../../../services/marks/decide.ts'
import { visitorLink } from '../../support/session-scored.ts'
import { expectError, id, useReadback } from '../readback/support.ts'

const sid = (n: number) => id('sid', n)

const readback = await useReadback()
const sessions = [1, 2, 3, 4, 5].map((n) => ({
  session_id: sid(n),
  event_id: id('evt', n),
  evaluated_at: 1000 + n,
  visitor: visitorLink({ id: id('vid', n < 4 ? 1 : 2) }),
}))
const elsewhere = { session_id: sid(9), event_id: id('evt', 9), environment: 'test' as const }
await readback.score(...sessions, elsewhere)

function mark(body: object) {
  // Each mark is later than the previous ones.
  readback.now.ms += 1
  return readback.send({ url: '/v1/marks', method: 'POST', body })
}
const remove = (markId: string, key?: string) =>
  readback.send({ url: `/v1/marks/${markId}`, method: 'DELETE', ...(key && { key }) })

/** Returns the mark of a session, and expects the same mark in the list. */
async function markOf(n: number) {
  const { body } = await readback.send({ url: `/v1/sessions/${sid(n)}` })
  const list = await readback.send({ url: '/v1/sessions' })
  const row = list.body.data.find((one: { id: string }) => one.id === sid(n))
  expect(row.mark).toEqual(body.data.mark)
  return body.data.mark
}

test('marked sessions show the mark; deleting it restores the previous one', async () => {
  const { status, body } = await mark({
    label: 'bot',
    reason: 'charged_back',
    session_ids: [sid(1), sid(2)],
  })
  const { id: markId, created_at } = body.data
  expect([status, body.data]).toMatchObject([201, { label: 'bot', session_count: 2 }])
  const expectedMark = { id: markId, label: 'bot', reason: 'charged_back', marked_at: created_at }
  expect([await markOf(1), await markOf(2), await markOf(3)]).toEqual([
    expectedMark,
    expectedMark,
    null,
  ])
  const newer = await mark({ label: 'legitimate', visitor_id: id('vid', 1) })
  expect(newer.body.data).toMatchObject({ label: 'legitimate', reason: null, session_count: 3 })
  expect((await markOf(1)).id).toBe(newer.body.data.id)
  expect((await remove(newer.body.data.id)).body.data).toEqual(newer.body.data)
  expect([await markOf(1), await markOf(3)]).toEqual([expectedMark, null])
  expectError(await remove(newer.body.data.id), 'request.not_found')
})

test('marking a user marks its current sessions', async () => {
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

describe('marks nothing', () => {
  const target = { session_ids: [sid(5)] }
  const many = Array.from({ length: maxSessionsPerMark + 1 }, (_, n) => sid(n))
  test.each<[string, object, string]>([
    ['without a label', target, 'label'],
    ['with an unknown label', { label: 'other', ...target }, 'label'],
    [
      'with a reason of many words',
      { label: 'bot', reason: 'Ada complained', ...target },
      'reason',
    ],
    ['with too long a reason', { label: 'bot', reason: 'x'.repeat(65), ...target }, 'reason'],
    ['without a target', { label: 'bot' }, 'session_ids'],
    ['with two targets', { label: 'bot', ...target, visitor_id: id('vid', 2) }, 'visitor_id'],
    [
      'with all three targets',
      { label: 'bot', ...target, client_user_id: 'a', visitor_id: id('vid', 2) },
      'visitor_id',
    ],
    ['with no session', { label: 'bot', session_ids: [] }, 'session_ids'],
    ['with a session twice', { label: 'bot', session_ids: [sid(5), sid(5)] }, 'session_ids'],
    ['with too many sessions', { label: 'bot', session_ids: many }, 'session_ids'],
    ['with a malformed id', { label: 'bot', session_ids: [sid(5), 'sid_1'] }, 'session_ids.1'],
    ['with an unknown session', { label: 'bot', session_ids: [sid(5), sid(77)] }, 'session_ids'],
    [
      'with a session of another environment',
      { label: 'bot', session_ids: [sid(5), sid(9)] },
      'session_ids',
    ],
    ['with an unknown visitor', { label: 'bot', visitor_id: id('vid', 77) }, 'visitor_id'],
    ['with an invalid user id', { label: 'bot', client_user_id: 'a\u0000b' }, 'client_user_id'],
    ['with an unknown member', { label: 'bot', ...target, note: 'x' }, 'note'],
  ])('%s', async (_, body, name) => {
    const before = await readback.eventCount()
    expectError(await mark(body), 'request.validation_failed', name)
    expect([await readback.eventCount(), await markOf(5)]).toEqual([before, null])
  })

  test('by a key of another organization or environment', async () => {
    const body = { label: 'human', session_ids: [sid(2)] }
    const { id: markId } = (await mark({ ...body, label: 'bot' })).body.data
    for (const key of [readback.testKey, (await readback.organization()).key]) {
      const response = await readback.send({ url: '/v1/marks', method: 'POST', key, body })
      expectError(response, 'request.validation_failed')
      expectError(await remove(markId, key), 'request.not_found')
    }
    expect((await markOf(2)).id).toBe(markId)
    for (const unknown of ['mrk_1', id('mrk', 77), 'x'])
      expectError(await remove(unknown), 'request.not_found')
  })
})

test('writes a mark only for the sessions that it changes', async () => {
  const body = { label: 'human', reason: 'called' }
  const first = await mark({ ...body, session_ids: [sid(3)] })
  const before = await readback.eventCount()
  const second = await mark({ ...body, session_ids: [sid(3), sid(5)] })
  expect(await readback.eventCount()).toBe(before + 1)
  expect(second.body.data.session_count).toBe(1)
  expect([(await markOf(3)).id, (await markOf(5)).id]).toEqual([
    first.body.data.id,
    second.body.data.id,
  ])
  const third = await mark({ ...body, session_ids: [sid(3), sid(5)] })
  expect([third.body.data, await readback.eventCount()]).toEqual([second.body.data, before + 1])
  // A different reason makes a new mark.
  const other = await mark({ ...body, reason: 'another', session_ids: [sid(3), sid(5)] })
  expect(other.body.data.id).not.toBe(second.body.data.id)
})

test('marks the maximum number of sessions, and of two concurrent deletions one succeeds', async () => {
  const sessions = Array.from({ length: maxSessionsPerMark }, (_, n) => 10_000 + n)
  await readback.score(
    ...sessions.map((n) => ({
      session_id: sid(n),
      event_id: id('evt', n),
      visitor: visitorLink({ id: id('vid', 3) }),
    })),
  )
  const { body } = await mark({ label: 'bot', session_ids: sessions.map(sid) })
  expect(body.data.session_count).toBe(maxSessionsPerMark)
  const both = await Promise.all([remove(body.data.id), remove(body.data.id)])
  expect(both.map(({ status }) => status).toSorted()).toEqual([200, 404])
})
