import { expect, test } from 'vitest'
import { expectError, id, numbersIn, useReadback } from './support.ts'

const readback = await useReadback()
await readback.score(
  { session_id: id('sid', 1), event_id: id('evt', 1) },
  { session_id: id('sid', 2), event_id: id('evt', 2) },
  { session_id: id('sid', 3), event_id: id('evt', 3), environment: 'test' },
)

const patch = (body: unknown, sessionId: string = id('sid', 1)) =>
  readback.send({ url: `/v1/sessions/${sessionId}`, method: 'PATCH', body })
const get = async (number = 1) =>
  (await readback.send({ url: `/v1/sessions/${id('sid', number)}` })).body.data

test('PATCH /v1/sessions/{sessionId} sets, changes and clears the user, in the response and later reads, and changes nothing else', async () => {
  const before = await get()
  for (const client_user_id of ['user_1', 'user_2', null]) {
    const { status, body } = await patch({ client_user_id })
    expect([status, body.data]).toEqual([200, { ...before, client_user_id }])
    expect(await get()).toEqual(body.data)
  }
})

test('nothing is recorded when nothing changes', async () => {
  await patch({ client_user_id: 'same' })
  const before = await readback.eventCount()
  expect((await patch({ client_user_id: 'same' })).status).toBe(200)
  expect(await readback.eventCount()).toBe(before)
})

test('the session is found by the new id, and no longer by the previous one', async () => {
  await patch({ client_user_id: 'Erika.Mustermann' })
  const found = async () =>
    numbersIn(await readback.send({ url: '/v1/sessions?search=mustermann' }))
  expect(await found()).toEqual([1])
  await patch({ client_user_id: null })
  expect(await found()).toEqual([])
})

test.each([
  [{}, 'client_user_id', 'required'],
  [{ client_user_id: '' }, 'client_user_id', 'invalid'],
  [{ client_user_id: 7 }, 'client_user_id', 'invalid_type'],
  [{ client_user_id: 'u', verdict: 'human' }, 'verdict', 'not_allowed'],
  [null, 'body', 'invalid_type'],
  [undefined, 'body', 'invalid_type'],
])('%j is rejected: %s %s', async (body, name, issue) => {
  const { error } = (await patch(body)).body
  expect(error.details).toMatchObject({
    parameter_set: 'session_update',
    fields: [{ name, issue }],
  })
})

test.each([id('sid', 3), id('sid', 99), 'nonsense', '0'.repeat(32)])(
  'returns 404 for %s',
  async (session) => {
    expectError(await patch({ client_user_id: 'u' }, session), 'request.not_found')
  },
)

test('sixteen concurrent updates are applied one after the other', async () => {
  const before = await readback.eventCount()
  const users = Array.from({ length: 16 }, (_, index) => `racer_${index}`)
  const responses = await Promise.all(
    users.map((client_user_id) => patch({ client_user_id }, id('sid', 2))),
  )
  expect(responses.map(({ status }) => status)).toEqual(users.map(() => 200))
  expect(await readback.eventCount()).toBe(before + users.length)
  expect(users).toContain((await get(2)).client_user_id)
})
