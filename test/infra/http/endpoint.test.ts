import { expect, test } from 'vitest'
import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import { createTestApp } from './test-app.ts'

const about = { auth: [], tag: 'Operations', summary: 'Of the test' }

function refuseClosed({ params }: { params: { shop: string } }): void {
  if (params.shop === 'closed') throw new ApiError('request.not_found')
}

async function start() {
  const app = await createTestApp()
  endpoint(app, {
    ...about,
    route: 'POST /shops/:shop/orders',
    operationId: 'order',
    params: z.object({ shop: z.string() }),
    query: z.object({ by: z.string().default('post') }),
    body: z.strictObject({ count: z.int().transform((count) => count * 2) }),
    parameterSet: 'order_create',
    answers: { 201: single(z.object({})) },
    errors: [404],
    before: refuseClosed,
    run: ({ params, query, body }) => ({ data: [params.shop, query.by, body.count] }),
  })
  endpoint(app, {
    ...about,
    route: 'DELETE /shops/:shop',
    operationId: 'close',
    params: z.object({ shop: z.string() }),
    noBody: 'api_key_revoke',
    before: refuseClosed,
    answers: { 200: single(z.object({})) },
    run: (_request, { reply, answer }) => reply.code(202).send(answer({ data: 'closed' })),
  })
  await app.ready()
  return app
}

test('the answer has the first status and meta, and the parts of the request are as their schemas say', async () => {
  const app = await start()
  const response = await app.inject({
    method: 'POST',
    url: '/shops/a/orders',
    payload: { count: 2 },
  })
  expect(response.statusCode).toBe(201)
  const meta = { request_id: response.headers['x-request-id'] }
  expect(response.json()).toEqual({ data: ['a', 'post', 4], meta })
})

test('what is asked before comes first, and what does not fit names its parameter set', async () => {
  const app = await start()
  const payload = { count: 'two' }
  const closed = await app.inject({ method: 'POST', url: '/shops/closed/orders', payload })
  expect(closed.statusCode).toBe(404)
  const refused = await app.inject({ method: 'POST', url: '/shops/a/orders', payload })
  expect(refused.json().error).toMatchObject({
    status: 422,
    details: { parameter_set: 'order_create' },
  })
})

test('a body is refused where there is none, and a reply that was sent stays as it is', async () => {
  const app = await start()
  const refused = await app.inject({ method: 'DELETE', url: '/shops/a', payload: { force: true } })
  expect(refused.json().error).toMatchObject({
    status: 422,
    details: { parameter_set: 'api_key_revoke' },
  })
  const closed = await app.inject({
    method: 'DELETE',
    url: '/shops/closed',
    payload: { force: true },
  })
  expect(closed.statusCode).toBe(404)
  const sent = await app.inject({ method: 'DELETE', url: '/shops/a' })
  expect(sent.statusCode).toBe(202)
  expect(sent.json()).toMatchObject({ status: 200, body: { data: 'closed', meta: {} } })
})

test('the description has the errors that follow from the body, and those that are named', async () => {
  const app = await start()
  const paths = z.record(
    z.string(),
    z.record(z.string(), z.looseObject({ responses: z.looseObject({}) })),
  )
  const described = paths.parse(app.swagger().paths)
  const statuses = (path: string, method: string) =>
    Object.keys(described[path]?.[method]?.responses ?? {}).join(' ')
  expect(statuses('/shops/{shop}/orders', 'post')).toBe('201 400 404 413 415 422 431 500 503')
  expect(statuses('/shops/{shop}', 'delete')).toBe('200 400 413 415 422 431 500 503')
})
