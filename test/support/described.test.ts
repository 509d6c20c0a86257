import { randomBytes } from 'node:crypto'
import type { FastifySchema } from 'fastify'
import pino from 'pino'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ApiError } from '../../infra/errors/errors.ts'
import { createApp } from '../../infra/http/app.ts'
import { errorResponses } from '../../infra/http/schemas.ts'
import { validateResponses, validatingFetch } from './described.ts'

interface Answer {
  status?: number
  body?: object | string
  type?: string
  code?: 'request.conflict' | 'request.not_found'
}

/** Starts an app with one described endpoint that sends the given response. */
async function startApp(answer: Answer) {
  const app = await createApp({
    logger: pino({ level: 'silent' }),
    random: randomBytes,
    publicUrl: 'http://a',
  })
  const described = validateResponses(app)
  const count = z.strictObject({ count: z.int() })
  const schema: FastifySchema = { response: { 200: count, ...errorResponses(404) } }
  app.get('/things/:thingId', { schema }, async (_request, reply) => {
    const { status = 200, body = {}, type = 'application/json', code } = answer
    if (code) throw new ApiError(code)
    return reply
      .code(status)
      .type(type)
      .send(typeof body === 'string' ? body : JSON.stringify(body))
  })
  return { app, described }
}

async function problemsOf(answer: Answer): Promise<readonly string[]> {
  const { app, described } = await startApp(answer)
  await app.inject('/things/1')
  expect(described.count()).toBe(1)
  await app.close().catch(() => undefined)
  return described.problems
}

describe('a response that differs from the description is found', () => {
  test.each<[string, Answer, string]>([
    ['a wrong type', { body: { count: 'one' } }, 'must be integer'],
    ['a missing member', { body: {} }, "required property 'count'"],
    ['one too many', { body: { count: 1, more: 1 } }, 'additional properties'],
    ['no JSON', { body: '{' }, 'must be object'],
    ['another content type', { body: 'a', type: 'text/plain' }, 'content type text/plain'],
    ['an unknown status', { status: 202, body: { count: 1 } }, 'status is not described'],
    ['an unknown error', { code: 'request.conflict' }, 'not described (request.conflict)'],
    ['an error without envelope', { status: 404, body: { count: 1 } }, "'error'"],
  ])('%s', async (_, answer, problem) => {
    expect((await problemsOf(answer)).join('\n')).toContain(problem)
  })

  test('closing the app says so', async () => {
    const { app } = await startApp({ body: {} })
    await app.inject('/things/1')
    await expect(app.close()).rejects.toThrow('differences from /openapi.json')
  })

  test('a missing request id', async () => {
    const { app, described } = await startApp({ body: { count: 1 } })
    app.addHook('onRequest', async (_request, reply) => void reply.removeHeader('x-request-id'))
    await app.inject('/things/1')
    await app.close().catch(() => undefined)
    expect(described.problems.join()).toContain('no header X-Request-Id')
  })

  test('over the network, at once', async () => {
    const { app } = await startApp({ body: { count: 'one' } })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const checked = await validatingFetch(url)
    await expect(checked(`${url}/things/1`)).rejects.toThrow('must be integer')
    await app.close().catch(() => undefined)
  })
})

describe('a response that is as described passes', () => {
  test.each<Answer>([{ body: { count: 1 } }, { code: 'request.not_found' }])(
    '%o',
    async (answer) => {
      expect(await problemsOf(answer)).toEqual([])
    },
  )

  test('so do errors of paths that do not exist, and what cannot be read', async () => {
    const { app, described } = await startApp({ body: { count: 1 } })
    for (const url of [
      '/nowhere',
      '/things/%zz',
      '/livez',
      '/readyz',
      '/openapi.json',
      '/docs/errors',
    ])
      await app.inject(url)
    await app.inject({ method: 'PUT', url: '/things/1' })
    await app.inject({ method: 'HEAD', url: '/things/1' })
    await app.close()
    expect(described.count()).toBeGreaterThanOrEqual(4)
  })

  test('over the network', async () => {
    const { app } = await startApp({ body: { count: 1 } })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const checked = await validatingFetch(url)
    expect(await (await checked(`${url}/things/1`)).json()).toEqual({ count: 1 })
    await app.close()
  })
})
