import { expect, test } from 'vitest'
import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import { createTestApp } from './test-app.ts'

const common = { auth: [], tag: 'Operations', summary: 'Test' }

function checkOpen({ params }: { params: { shop: string } }): void {
  if (params.shop === 'closed') throw new ApiError('request.not_found')
}

async function start() {
  const app = await createTestApp()
  endpoint(app, {
    ...common,
    route: 'POST /shops/:shop/orders',
    operationId: 'order',
    params: z.object({ shop: z.string() }),
    body: z.strictObject({ count: z.int() }),
    parameterSet: 'order_create',
    responses: { 201: single(z.object({})) },
    errors: [404],
    beforeValidation: checkOpen,
    run: () => ({ data: {} }),
  })
  endpoint(app, {
    ...common,
    route: 'DELETE /shops/:shop',
    operationId: 'close',
    params: z.object({ shop: z.string() }),
    rejectBodyAs: 'api_key_revoke',
    beforeValidation: checkOpen,
    responses: { 200: single(z.object({})) },
    run: (_request, { reply, toResponse }) => reply.code(202).send(toResponse({ data: 'closed' })),
  })
  await app.ready()
  return app
}

test('runs beforeValidation first, and names the parameter set of an invalid body', async () => {
  const app = await start()
  const payload = { count: 'two' }
  const closed = await app.inject({ method: 'POST', url: '/shops/closed/orders', payload })
  expect(closed.statusCode).toBe(404)
  const refused = await app.inject({ method: 'POST', url: '/shops/a/orders', payload })
  const details = { parameter_set: 'order_create' }
  expect(refused.json().error).toMatchObject({ status: 422, details })
})

test('rejects a body on a route without one, and keeps a reply that run has sent', async () => {
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
