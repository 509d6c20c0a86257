import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { filterQuery } from '../../../services/readback/session-filters.ts'
import published from '../../fixtures/contract/openapi.json' with { type: 'json' }
import { visitorLink } from '../../support/session-scored.ts'
import { id, type Readback, startReadback } from './support.ts'

const operation = z.looseObject({
  operationId: z.string(),
  parameters: z
    .array(z.looseObject({ name: z.string(), in: z.string(), schema: z.unknown() }))
    .optional(),
  responses: z.record(z.string(), z.looseObject({ content: z.unknown().optional() })),
  security: z.unknown().optional(),
})
const document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.looseObject({ schemas: z.record(z.string(), z.unknown()) }),
})

let readback: Readback
let description: z.output<typeof document>

beforeAll(async () => {
  readback = await startReadback()
  await readback.score({
    session_id: id('sid', 1),
    event_id: id('evt', 1),
    visitor: visitorLink({ id: id('vid', 1) }),
  })
  description = document.parse((await readback.send({ url: '/openapi.json' })).body)
})
afterAll(() => readback.stop())

const operations = [
  { path: '/v1/sessions', method: 'get', url: '/v1/sessions?limit=10' },
  { path: '/v1/sessions/{sessionId}', method: 'get', url: `/v1/sessions/${id('sid', 1)}` },
  { path: '/v1/sessions/{sessionId}', method: 'patch', url: `/v1/sessions/${id('sid', 1)}` },
  { path: '/v1/fingerprints', method: 'get', url: '/v1/fingerprints' },
  { path: '/v1/fingerprints/{visitorId}', method: 'get', url: `/v1/fingerprints/${id('vid', 1)}` },
] as const

describe('/openapi.json', () => {
  test.each(operations)('describes $method $path as published', ({ path, method }) => {
    const ours = description.paths[path]?.[method]
    const theirs = operation.parse(
      Object.entries(published.paths[path]).find(([name]) => name === method)?.[1],
    )
    expect(ours?.operationId).toBe(theirs.operationId)
    const names = (one: typeof ours) => one?.parameters?.map((parameter) => parameter.name).sort()
    const added = /^get(.*Id\}|\/v1\/sessions)$/.test(`${method}${path}`) ? ['include'] : []
    const filters = path === '/v1/sessions' ? Object.keys(filterQuery) : []
    expect(new Set(names(ours))).toEqual(new Set([...added, ...filters, ...(names(theirs) ?? [])]))
    expect(Object.keys(ours?.responses ?? {})).toEqual(
      expect.arrayContaining(Object.keys(theirs.responses)),
    )
    expect(ours?.security).toEqual([{ secretKey: [] }])
  })

  test('an update names how its body can be refused', () => {
    const update = description.paths['/v1/sessions/{sessionId}']?.patch
    expect(Object.keys(update?.responses ?? {})).toEqual(
      expect.arrayContaining(['400', '413', '415', '422']),
    )
  })

  test('limit has its bounds and default', () => {
    const limit = description.paths['/v1/sessions']?.get?.parameters?.find(
      ({ name }) => name === 'limit',
    )
    expect(limit?.schema).toMatchObject({ type: 'integer', minimum: 1, maximum: 200, default: 50 })
  })

  test.each(operations)('$method $path answers as described', async ({ path, method, url }) => {
    const schema = description.paths[path]?.[method]?.responses['200']?.content
    const $defs = JSON.parse(
      JSON.stringify(description.components.schemas).replaceAll(
        '#/components/schemas/',
        '#/$defs/',
      ),
    )
    const json = z
      .object({ 'application/json': z.object({ schema: z.looseObject({}) }) })
      .parse(schema)
    const text = JSON.stringify(json['application/json'].schema).replaceAll(
      '#/components/schemas/',
      '#/$defs/',
    )
    const described = z.fromJSONSchema({ ...JSON.parse(text), $defs })
    const body =
      method === 'patch' ? { method: 'PATCH' as const, body: { client_user_id: 'u' } } : {}
    const response = await readback.send({ url, ...body })
    expect(described.safeParse(response.body).error).toBeUndefined()
  })

  test('every reference leads somewhere', () => {
    for (const [, name = ''] of JSON.stringify(description).matchAll(
      /"#\/components\/schemas\/([^"]+)"/g,
    ))
      expect(description.components.schemas).toHaveProperty([name])
  })
})
