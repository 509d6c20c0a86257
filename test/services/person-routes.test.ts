import { afterAll, expect, it } from 'vitest'
import { secretKey } from '../authorization/credential.ts'
import { startWorld } from '../authorization/world.ts'

const world = await startWorld()
const organizationId = await world.organization('people')
const url = `/v1/organizations/${organizationId}`
const headers = await secretKey(world, { organizationId })
const person = await world.person(organizationId)
afterAll(() => world.stop())

it('a repeated split returns the first response, whatever its reason and time', async () => {
  const { visitorId, sessionId } = person
  const split = async (reason: string) => {
    world.now.ms += 1000
    const response = await world.app.inject({
      method: 'POST',
      url: `${url}/visitors/${visitorId}/splits`,
      headers,
      payload: { session_ids: [sessionId], reason },
    })
    expect(response.statusCode).toBe(201)
    return response.json()
  }
  const first = await split('Two people.')
  expect(first.data).toMatchObject({
    visitor_id: visitorId,
    session_ids: [sessionId],
    reason: 'Two people.',
  })
  const again = await split('As before.')
  expect(again.data).toEqual(first.data)
  expect(again.meta.request_id).not.toBe(first.meta.request_id)
})

it.each(['visitor', 'user'])('the export of a %s must not be cached', async (kind) => {
  const { otherVisitorId, clientUserId } = person
  const path = kind === 'visitor' ? `visitors/${otherVisitorId}` : `users/${clientUserId}`
  const response = await world.app.inject({ method: 'GET', url: `${url}/${path}/export`, headers })
  expect([response.statusCode, response.headers['cache-control']]).toEqual([200, 'no-store'])
})
