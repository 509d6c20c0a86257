import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectError, expectShape } from './contract.ts'
import { id, type Readback, startReadback } from './support.ts'

let readback: Readback
const sessionId = id('sid', 1)

beforeAll(async () => {
  readback = await startReadback()
  await readback.score(
    { session_id: sessionId, event_id: id('evt', 1) },
    { session_id: id('sid', 2), event_id: id('evt', 2) },
    { session_id: id('sid', 3), event_id: id('evt', 3), environment: 'test' },
  )
})
afterAll(() => readback.stop())

const patch = (body: unknown, session: string = sessionId) =>
  readback.send({ url: `/v1/sessions/${session}`, method: 'PATCH', body })
const get = () => readback.send({ url: `/v1/sessions/${sessionId}` })

async function eventCount(): Promise<number> {
  const ends = await readback.log.endPositions('tidegate.sessions.v1')
  return ends.reduce((sum, { offset }) => sum + offset, 0)
}

describe('PATCH /v1/sessions/{sessionId}', () => {
  test('sets, changes and clears; each answer and the next read show it', async () => {
    for (const client_user_id of ['user_1', 'user_2', null]) {
      const { status, body } = await patch({ client_user_id })
      expect(status).toBe(200)
      expectShape('SessionDetailResponse', body)
      expect(body.data.client_user_id).toBe(client_user_id)
      expect((await get()).body.data).toEqual(body.data)
    }
  })

  test('nothing is recorded when nothing changes', async () => {
    await patch({ client_user_id: 'same' })
    const before = await eventCount()
    expect((await patch({ client_user_id: 'same' })).status).toBe(200)
    expect(await eventCount()).toBe(before)
  })

  test('the decision and the place in the list stay as they are', async () => {
    const before = (await get()).body.data
    await patch({ client_user_id: 'other' })
    const after = (await get()).body.data
    expect({ ...after, client_user_id: null }).toEqual({ ...before, client_user_id: null })
  })

  test('the session is then found by the id, and no longer by the one before', async () => {
    await patch({ client_user_id: 'Erika.Mustermann' })
    const found = async (search: string) =>
      (await readback.send({ url: `/v1/sessions?search=${search}` })).body.data.map(
        (row: { id: string }) => row.id,
      )
    expect(await found('mustermann')).toEqual([sessionId])
    await patch({ client_user_id: null })
    expect(await found('mustermann')).toEqual([])
  })

  test.each([
    [{}, 'client_user_id', 'required'],
    [{ client_user_id: '' }, 'client_user_id', 'invalid'],
    [{ client_user_id: 7 }, 'client_user_id', 'invalid_type'],
    [{ client_user_id: 'x'.repeat(257) }, 'client_user_id', 'invalid'],
    [{ client_user_id: 'a\u0000b' }, 'client_user_id', 'invalid'],
    [{ client_user_id: 'u', verdict: 'human' }, 'verdict', 'not_allowed'],
    [[], 'body', 'invalid_type'],
    ['user', 'body', 'invalid_type'],
    [null, 'body', 'invalid_type'],
  ])('%j is refused: %s %s', async (body, name, issue) => {
    const response = await patch(body)
    expectError(response, 'request.validation_failed')
    expect(response.body.error.details).toMatchObject({
      parameter_set: 'session_update',
      fields: [{ name, issue }],
    })
  })

  test('no body is refused', async () => {
    const response = await readback.send({ url: `/v1/sessions/${sessionId}`, method: 'PATCH' })
    expectError(response, 'request.validation_failed')
    expect(response.body.error.details.parameter_set).toBe('session_update')
  })

  test.each([id('sid', 3), id('sid', 99), 'nonsense', '0'.repeat(32)])(
    '%s is not found',
    async (session) => {
      expectError(await patch({ client_user_id: 'u' }, session), 'request.not_found')
    },
  )

  test('sixteen at once are taken one after the other, and the last one stands', async () => {
    const before = await eventCount()
    const users = Array.from({ length: 16 }, (_, index) => `racer_${index}`)
    const answers = await Promise.all(
      users.map((client_user_id) => patch({ client_user_id }, id('sid', 2))),
    )
    expect(answers.map(({ status }) => status)).toEqual(users.map(() => 200))
    expect(await eventCount()).toBe(before + users.length)
    const { body } = await readback.send({ url: `/v1/sessions/${id('sid', 2)}` })
    expect(users).toContain(body.data.client_user_id)
  })
})
