import { afterAll, expect, test } from 'vitest'
import { unavailable } from '../../../infra/errors/errors.ts'
import type { Decide, DecidedEvent } from '../../../infra/event-store/decide.ts'
import { createApp } from '../../../infra/http/app.ts'
import { createIdempotency } from '../../../infra/idempotency/idempotency.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { findKey } from '../../../projections/organizations/queries.ts'
import { rotationGraceMs } from '../../../services/organizations/decide-key.ts'
import { organizationRoutes } from '../../../services/organizations/routes.ts'
import { startApi } from '../../support/api.ts'
import { type Send, sendTo } from '../../support/send.ts'

const lateMs = 20 * 60 * 60 * 1000

/** Events that the process without a log would have written. */
let unwritten: DecidedEvent[] = []

const api = await startApi({ roles: ['api'] })
const { deps, pool, auth } = api
const failing = await createApp({ ...deps, publicUrl: 'https://tidegate.example' })
const decide: Decide = async (request) => {
  unwritten = request.decide(await transaction(pool, request.load))
  throw unavailable(new Error('the log is away'))
}
organizationRoutes(failing, {
  ...deps,
  decideAs: () => decide,
  auth,
  idempotency: createIdempotency(deps),
  config: api.core.config,
})
afterAll(async () => {
  await failing.close()
  await api.stop()
})

interface Repeated {
  url: string
  key: string
  idempotencyKey: string
  body?: object
}

/** Sends a request during a log outage and again 20 hours later. Returns the second response. */
async function repeatedLate({ url, key, body, idempotencyKey }: Repeated) {
  const headers = { 'idempotency-key': idempotencyKey }
  const request: Send = { method: 'POST', url, key, body, headers }
  expect((await sendTo(failing, request)).status).toBe(503)
  api.now.ms += lateMs
  const second = await api.send(request)
  expect(second.status).toBe(201)
  const again = await api.send(request)
  expect([again.headers['idempotent-replayed'], again.body]).toEqual(['true', second.body])
  return second.body.data
}

const iso = (at: number) => new Date(at).toISOString()

test('a rotation written only by a late repeat keeps its ids, and the 24-hour grace period starts then', async () => {
  const { organizationId, key, path } = await api.organization()
  const { keyId } = await api.issue({ organizationId, scopes: ['organizations:read'] })
  const url = `${path}/api-keys/${keyId}/rotations`
  const result = await repeatedLate({ url, key, idempotencyKey: 'late-rotation' })
  const issued = unwritten.map(({ event }) => event).find(({ type }) => type === 'ApiKeyIssued')
  const stored = await findKey(api.pool, organizationId, result.id)
  expect(issued?.data).toMatchObject({ key_id: result.id, lookup_hash: stored?.lookup_hash })
  expect(result.created_at).toBe(iso(api.now.ms))
  expect(await findKey(api.pool, organizationId, keyId)).toMatchObject({
    status: 'rotating',
    rotated_at: api.now.ms,
    grace_expires_at: api.now.ms + rotationGraceMs,
  })
  expect((await api.send({ url: path, key: result.revealed_key })).status).toBe(200)
})

test('an organization created only by a late repeat has the id of the first attempt', async () => {
  const { key } = await api.organization()
  const body = { name: 'Late', slug: 'late' }
  const result = await repeatedLate({
    url: '/v1/organizations',
    key,
    body,
    idempotencyKey: 'late-creation',
  })
  expect(unwritten.map(({ event }) => event.data)).toMatchObject([{ organization_id: result.id }])
  expect(result.created_at).toBe(iso(api.now.ms))
})
