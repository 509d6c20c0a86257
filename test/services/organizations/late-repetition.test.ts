import { afterAll, expect, test } from 'vitest'
import { unavailable } from '../../../infra/errors/errors.ts'
import type { Decide, DecidedEvent } from '../../../infra/event-store/decide.ts'
import { createApp } from '../../../infra/http/app.ts'
import { createIdempotency } from '../../../infra/idempotency/idempotency.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { findKey } from '../../../projections/organizations/queries.ts'
import { graceMs } from '../../../services/organizations/decide-key.ts'
import { organizationRoutes } from '../../../services/organizations/routes.ts'
import { startApi } from '../../support/api.ts'
import { type Send, sendTo } from '../../support/send.ts'

const lateMs = 20 * 60 * 60 * 1000

/** What the process whose log is away would have written. */
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

/** Sends where nothing can be written, and 20 hours later again where it can; the answer to the second. */
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

test('a rotation that only its late repetition writes is the same one, with 24 hours of grace from then', async () => {
  const { organizationId, key, path } = await api.organization()
  const { keyId } = await api.issue({ organizationId, scopes: ['organizations:read'] })
  const url = `${path}/api-keys/${keyId}/rotations`
  const made = await repeatedLate({ url, key, idempotencyKey: 'late-rotation' })
  const issued = unwritten.map(({ event }) => event).find(({ type }) => type === 'ApiKeyIssued')
  const stored = await findKey(api.pool, organizationId, made.id)
  expect(issued?.data).toMatchObject({ key_id: made.id, lookup_hash: stored?.lookup_hash })
  expect(made.created_at).toBe(iso(api.now.ms))
  expect(await findKey(api.pool, organizationId, keyId)).toMatchObject({
    status: 'rotating',
    rotated_at: api.now.ms,
    grace_expires_at: api.now.ms + graceMs,
  })
  expect((await api.send({ url: path, key: made.revealed_key })).status).toBe(200)
})

test('an organization that only its late repetition creates has the id of the first attempt', async () => {
  const { key } = await api.organization()
  const body = { name: 'Late', slug: 'late' }
  const made = await repeatedLate({
    url: '/v1/organizations',
    key,
    body,
    idempotencyKey: 'late-creation',
  })
  expect(unwritten.map(({ event }) => event.data)).toMatchObject([{ organization_id: made.id }])
  expect(made.created_at).toBe(iso(api.now.ms))
})
