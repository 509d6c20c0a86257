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
    body: z.strictObject({ count: z.int() }),
    parameterSet: 'order_create',
    answers: { 201: single(z.object({})) },
    errors: [404],
    before: refuseClosed,
    run: () => ({ data: {} }),
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

test('what is asked before comes first, and what does not fit names its parameter set', async () => {
  const app = await start()
  const payload = { count: 'two' }
  const closed = await app.inject({ method: 'POST', url: '/shops/closed/orders', payload })
  expect(closed.statusCode).toBe(404)
  const refused = await app.inject({ method: 'POST', url: '/shops/a/orders', payload })
  const details = { parameter_set: 'order_create' }
  expect(refused.json().error).toMatchObject({ status: 422, details })
})

test('a body is refused where there is none, and a reply that was sent stays as it is', async () => {
  const app = await start()
  const payload = { force: true }
  const refused = await app.inject({ method: 'DELETE', url: '/shops/a', payload })
  const details = { parameter_set: 'api_key_revoke' }
  expect(refused.json().error).toMatchObject({ status: 422, details })
  const closed = await app.inject({ method: 'DELETE', url: '/shops/closed', payload })
  expect(closed.statusCode).toBe(404)
  const sent = await app.inject({ method: 'DELETE', url: '/shops/a' })
  expect(sent.statusCode).toBe(202)
  expect(sent.json()).toMatchObject({ status: 200, body: { data: 'closed', meta: {} } })
})
