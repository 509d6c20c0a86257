import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startWorld, type World } from '../authorization/world.ts'
import published from '../fixtures/contract/openapi.json' with { type: 'json' }
import { differences } from './difference.ts'
import { expectedDifferences } from './expected-differences.ts'

let world: World
let ours: unknown
let found: string[]

beforeAll(async () => {
  world = await startWorld()
  ours = world.app.swagger()
  found = differences({ ours, theirs: published })
})
afterAll(() => world.stop())

describe('/openapi.json and the published description differ where it is meant', () => {
  test('every difference has its reason, and one alone', () => {
    const matching = (line: string) => expectedDifferences.filter(({ lines }) => lines.test(line))
    expect(found.filter((line) => matching(line).length !== 1)).toEqual([])
    console.log(`${found.length} differences for ${expectedDifferences.length} reasons`)
  })

  test.each(expectedDifferences)('$reason ($count)', ({ lines, count }) => {
    expect(found.filter((line) => lines.test(line))).toHaveLength(count)
  })
})

describe('the comparison sees', () => {
  const text = JSON.stringify(published)
  const changed = (from: string, to: string): unknown => {
    expect(text).toContain(from)
    return JSON.parse(text.replaceAll(from, to))
  }

  test('nothing between a document and itself', () => {
    expect(differences({ ours: published, theirs: published })).toEqual([])
  })

  test.each([
    {
      what: 'an operation id',
      from: '"operationId":"getSession"',
      to: '"operationId":"readSession"',
    },
    { what: 'a path', from: '"/v1/fingerprints"', to: '"/v1/visitors"' },
    { what: 'a parameter', from: '"name":"cursor"', to: '"name":"after"' },
    { what: 'an enum', from: '"inconclusive"', to: '"unknown"' },
    {
      what: 'a required member',
      from: '"required":["data","pagination","meta"]',
      to: '"required":["data","meta"]',
    },
    { what: 'a bound', from: '"maximum":200', to: '"maximum":500' },
    { what: 'a member', from: '"user_agent":', to: '"agent":' },
    { what: 'a webhook', from: '"session.result.persisted":{', to: '"session.stored":{' },
    {
      what: 'a header of a webhook',
      from: '"name":"X-Foil-Signature"',
      to: '"name":"X-Signature"',
    },
    { what: 'a payload of a webhook', from: '"calculated_at":', to: '"made_at":' },
    { what: 'the envelope of a webhook', from: '"const":"webhook_event"', to: '"const":"event"' },
    {
      what: 'the type of a webhook, beside an allOf',
      from: '"const":"session.result.persisted"',
      to: '"const":"session.result.stored"',
    },
  ])('$what', ({ from, to }) => {
    expect(differences({ ours: changed(from, to), theirs: published })).not.toEqual([])
  })

  test('a status', () => {
    const document = z
      .looseObject({
        paths: z.record(
          z.string(),
          z.record(z.string(), z.looseObject({ responses: z.looseObject({}) })),
        ),
      })
      .parse(JSON.parse(text))
    const responses = document.paths['/v1/sessions']?.get?.responses ?? {}
    delete responses['422']
    expect(differences({ ours: document, theirs: published })).toEqual([
      'GET /v1/sessions 422 application/json: not here',
    ])
  })

  test('a webhook that is gone', () => {
    const document = z.looseObject({ webhooks: z.looseObject({}) }).parse(JSON.parse(text))
    delete document.webhooks['session.result.persisted']
    expect(differences({ ours: document, theirs: published })).toEqual([
      'webhook POST session.result.persisted: not here',
    ])
  })

  test('null', () => {
    const document = z
      .looseObject({ components: z.looseObject({ schemas: z.looseObject({}) }) })
      .parse(JSON.parse(text))
    document.components.schemas.Verdict = {
      anyOf: [{ $ref: '#/components/schemas/Phase' }, { type: 'null' }],
    }
    expect(differences({ ours: document, theirs: published }).length).toBeGreaterThan(0)
  })
})
