import fastify from 'fastify'
import { beforeEach, describe, expect, test } from 'vitest'
import type { PersonPrincipal, Scope } from '../../../infra/access/principal.ts'
import type { OrganizationId } from '../../../infra/ids.ts'
import type { Environment } from '../../../schemas/events.ts'
import { createSharedAnswers } from '../../../services/console/shared-answers.ts'

interface Asking {
  organization?: OrganizationId
  environment?: Environment
  scopes?: Scope[]
  headers?: Record<string, string>
}

const principalOf = ({
  organization = 'org_a',
  environment = 'live',
  scopes = ['*'],
}: Asking): PersonPrincipal => ({
  ...{ type: 'person', consoleSessionId: 'csn_a', organizationId: organization },
  ...{ environment, scopes, capabilities: [] },
})

const begin = 1_800_000_000_000

/** A list and counts that number their answers, and can be made to wait or to fail. */
async function startApp() {
  const state = { now: begin, made: 0, waiting: 0, isLarge: true, isBroken: false, gate: Promise.resolve() }
  const app = fastify()
  const asked: { by: Asking } = { by: {} }
  const make = async () => {
    const number = ++state.made
    await state.gate
    if (state.isBroken) throw new Error('busy')
    return number
  }
  app.register(
    async (api) => {
      api.addHook('onRoute', createSharedAnswers({ clock: () => state.now }))
      api.addHook('onRequest', async (request) => {
        request.principal = principalOf(asked.by)
      })
      api.addHook('preHandler', async () => {
        state.waiting++
      })
      api.get('/v1/sessions', async ({ id }, reply) => {
        const number = await make()
        reply.header('x-filters-applied', 'verdict')
        return { data: [number], pagination: { has_more: state.isLarge }, meta: { request_id: id } }
      })
      api.get('/v1/sessions/aggregates', async ({ id }) => {
        const sessions = (await make()) + (state.isLarge ? 1_000_000 : 0)
        return { data: { sessions, groups: [] }, meta: { request_id: id } }
      })
      api.get('/v1/visitors', async () => ({ data: [await make()] }))
    },
    { prefix: '/console/api' },
  )
  const get = (path: string, by: Asking = {}) => {
    asked.by = by
    return app.inject({ url: `/console/api/v1/${path}`, ...(by.headers && { headers: by.headers }) })
  }
  return { state, get }
}

let { state, get } = await startApp()
beforeEach(async () => {
  ;({ state, get } = await startApp())
})

describe('an answer is shared', () => {
  test('with its headers, and under the id of each request', async () => {
    const [first, second] = [await get('sessions?verdict=bot'), await get('sessions?verdict=bot')]
    expect(state.made).toBe(1)
    expect(second.json().data).toEqual(first.json().data)
    expect(second.headers['x-filters-applied']).toBe('verdict')
    expect(second.json().meta.request_id).not.toBe(first.json().meta.request_id)
  })

  test('as long as the pages wait before they ask again: lists 5 seconds, counts 60', async () => {
    for (const path of ['sessions', 'sessions/aggregates']) await get(path)
    state.now = begin + 4999
    for (const path of ['sessions', 'sessions/aggregates']) await get(path)
    expect(state.made).toBe(2)
    state.now = begin + 5001
    for (const path of ['sessions', 'sessions/aggregates']) await get(path)
    expect(state.made).toBe(3)
    state.now = begin + 60_001
    await get('sessions/aggregates')
    expect(state.made).toBe(4)
  })

  test('by those who ask while it is made, also where it is small', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    Object.assign(state, { isLarge: false, gate: promise })
    const both = [get('sessions'), get('sessions')]
    await expect.poll(() => state.waiting).toBe(2)
    // Handlers follow in the same turn of the loop.
    await new Promise((next) => setImmediate(next))
    resolve()
    expect((await Promise.all(both)).map((answer) => answer.json().data)).toEqual([[1], [1]])
    expect(state.made).toBe(1)
  })
})

describe('an answer is made anew', () => {
  test.each<[string, string, Asking]>([
    ['another address', 'sessions?verdict=human', {}],
    ['another organization', 'sessions', { organization: 'org_b' }],
    ['the other environment', 'sessions', { environment: 'test' }],
    ['other scopes', 'sessions', { scopes: ['sessions:list'] }],
    ['somebody who changed something', 'sessions', { headers: { 'cache-control': 'no-cache' } }],
  ])('for %s', async (_, path, by) => {
    await get('sessions')
    await get(path, by)
    expect(state.made).toBe(2)
  })

  test('and the new one is shared from then on', async () => {
    await get('sessions')
    await get('sessions', { headers: { 'cache-control': 'no-cache' } })
    expect((await get('sessions')).json().data).toEqual([2])
  })

  test('where it is small, or of another kind', async () => {
    state.isLarge = false
    for (const path of ['sessions', 'sessions/aggregates', 'visitors']) {
      await get(path)
      await get(path)
    }
    expect(state.made).toBe(6)
  })

  test('after an error, also by those who waited for it', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    Object.assign(state, { isBroken: true, gate: promise })
    const both = [get('sessions'), get('sessions')]
    await expect.poll(() => state.waiting).toBe(2)
    // Handlers follow in the same turn of the loop.
    await new Promise((next) => setImmediate(next))
    resolve()
    expect((await Promise.all(both)).map(({ statusCode }) => statusCode)).toEqual([500, 500])
    expect(state.made).toBe(2)
    state.isBroken = false
    expect((await get('sessions')).statusCode).toBe(200)
  })
})
