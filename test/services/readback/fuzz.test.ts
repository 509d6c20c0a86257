import fc from 'fast-check'
import { expect, test } from 'vitest'
import { errorTable } from '../../../infra/errors/errors.ts'
import { errorEnvelopeSchema } from '../../../infra/http/schemas.ts'
import { id, useReadback } from './support.ts'

let authorization = ''
const seed = Date.now() % 2 ** 31
const statuses = new Set<number>(Object.values(errorTable).map(({ status }) => status))

const readback = await useReadback()
authorization = `Bearer ${(await readback.organization()).key}`
await readback.score({ session_id: id('sid', 1), event_id: id('evt', 1) })

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '%',
    '%zz',
    '%00',
    '\0',
    '__proto__',
    '-1',
    '50',
    'sid_',
    'vid_',
    id('sid', 1),
    "' or 1=1 --",
    '😀',
  ),
)
const part = text.map((raw) => encodeURIComponent(raw.toWellFormed()))
const path = fc.oneof(
  fc.constantFrom('/v1/sessions', '/v1/fingerprints', `/v1/sessions/${id('sid', 1)}`),
  part.map((value) => `/v1/sessions/${value}`),
  part.map((value) => `/v1/fingerprints/${value}`),
  fc.webPath().map((value) => value || '/'),
)
const parameter = fc
  .tuple(
    fc.oneof(fc.constantFrom('limit', 'cursor', 'verdict', 'search', 'sort', 'offset'), part),
    part,
  )
  .map(([name, value]) => `${name}=${value}`)
const url = fc
  .tuple(path, fc.array(parameter, { maxLength: 4 }))
  .map(([base, parameters]) => (parameters.length > 0 ? `${base}?${parameters.join('&')}` : base))
const request = fc.record({
  method: fc.constantFrom('GET', 'PATCH', 'POST', 'DELETE', 'PUT', 'OPTIONS', 'HEAD'),
  url,
  authorization: fc.oneof(
    { weight: 4, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.stringMatching(/^[ -~]{0,40}$/) },
  ),
  contentType: fc.constantFrom(
    'application/json',
    'application/json; charset=utf-8',
    'text/plain',
    'x',
    undefined,
  ),
  payload: fc.oneof(
    fc.json(),
    fc.string({ unit: 'binary' }),
    fc
      .record({ client_user_id: fc.oneof(text, fc.constant(null)) })
      .map((body) => JSON.stringify(body)),
  ),
})

test(`every request gets a response or the error envelope (seed ${seed})`, async () => {
  const property = fc.asyncProperty(request, async ({ method, payload, contentType, ...rest }) => {
    const withBody = !['GET', 'HEAD', 'OPTIONS'].includes(method)
    const response = await readback.app.inject({
      method,
      url: rest.url,
      headers: {
        authorization: rest.authorization ?? authorization,
        ...(withBody && contentType && { 'content-type': contentType }),
      },
      ...(withBody && { payload }),
    })
    expect(response.statusCode).toBeLessThan(500)
    expect(response.headers['x-request-id']).toMatch(/^req_[0-9a-f]{32}$/)
    if (response.statusCode < 400) return
    expect(statuses).toContain(response.statusCode)
    if (method !== 'HEAD') errorEnvelopeSchema.parse(response.json())
  })
  await fc.assert(property, { seed, numRuns: 400 })
})
