import { Ajv2020, type AnySchema } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ApiError } from '../../infra/errors/errors.ts'
import { openBodySchema } from '../../services/collect/schemas.ts'
import { completeKeyRequest } from '../../services/organizations/checked-input.ts'
import { createKeyBody, storedTarget } from '../../services/organizations/schemas.ts'
import { startWorld, type World } from '../authorization/world.ts'

const parameter = z.object({
  in: z.string(),
  name: z.string(),
  schema: z.record(z.string(), z.unknown()),
})
const body = z.object({
  content: z.record(z.string(), z.object({ schema: z.record(z.string(), z.unknown()) })),
})
const operation = z.object({
  operationId: z.string(),
  parameters: z.array(parameter).default([]),
  requestBody: body.optional(),
})
const document = z.object({ paths: z.record(z.string(), z.record(z.string(), operation)) })

let world: World
let operations: z.output<typeof operation>[]
beforeAll(async () => {
  world = await startWorld()
  const { paths } = document.parse(world.app.swagger())
  operations = Object.values(paths).flatMap((methods) => Object.values(methods))
})
afterAll(() => world.stop())

const ajv = new Ajv2020({ strict: false })
addFormats.default(ajv)

function bodyCheck(id: string) {
  const found = operations.find(({ operationId }) => operationId === id)
  const schema: AnySchema | undefined = found?.requestBody?.content['application/json']?.schema
  if (!schema) throw new Error(`${id} has no body`)
  return ajv.compile(schema)
}

test('every id in a path has its form', () => {
  const params = operations.flatMap(({ operationId, parameters }) =>
    parameters.filter((one) => one.in === 'path').map((one) => ({ operationId, ...one })),
  )
  expect(params.length).toBeGreaterThanOrEqual(40)
  expect(params.filter(({ schema }) => typeof schema.pattern !== 'string')).toEqual([])
})

const digits = '0'.repeat(26)
test.each([
  ['getSession', 'sessionId', [`sid_${digits}`, 'aA'.repeat(16)], ['sid_0', `x${'a'.repeat(32)}`]],
  ['getVisitorFingerprint', 'visitorId', [`vid_${digits}`], [`vid_${'l'.repeat(26)}`]],
  ['updateWebhookEndpoint', 'endpointId', [`we_${'f'.repeat(32)}`], [`we_${'g'.repeat(32)}`]],
  ['pollGateSession', 'gateSessionId', [`gate_${digits}`], ['gate_']],
  ['pingCollect', 'pingId', ['a-_9'], ['a.b']],
  ['createOrganization', 'Idempotency-Key', ['a b~'], ['é', 'a\nb']],
])('%s: the form of %s', (id, name, fitting, others) => {
  const operation = operations.find(({ operationId }) => operationId === id)
  const schema = operation?.parameters.find((one) => one.name === name)?.schema
  const fits = ajv.compile(schema ?? false)
  expect([...fitting, ...others].filter((text) => fits(text))).toEqual(fitting)
})

/** Syntax common to RE2, PCRE, Java, .NET, Python and ECMAScript: no look-around, \p, \u, \c or backreferences. */
const readable =
  /^(?:\\[dws.^$*+?()[\]{}|/\\-]|\\x[0-9a-f]{2}|\(\?:|\((?!\?)|\[(?:\\[dws.^$*+?()[\]{}|/\\-]|\\x[0-9a-f]{2}|[^\]\\])+\]|[^\\([])*$/

function patternsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    name === 'pattern' && typeof member === 'string' ? [member] : patternsIn(member),
  )
}

test('every pattern can be read by other languages', () => {
  const patterns = [...new Set(patternsIn(world.app.swagger()))]
  expect(patterns.length).toBeGreaterThan(20)
  expect(patterns.filter((pattern) => !readable.test(pattern))).toEqual([])
  for (const strange of ['^\\P{Cc}+$', '(?=a)', '(?<!a)b', '(?<n>a)', '\\u0041', '(a)\\1'])
    expect([strange, readable.test(strange)]).toEqual([strange, false])
})

describe('what members demand of each other is described as it is enforced', () => {
  const choices = <T>(...values: T[]): (T | undefined)[] => [undefined, ...values]

  test('on a new key', () => {
    const fits = bodyCheck('createOrganizationApiKey')
    const seen = new Set<boolean>()
    for (const type of choices('secret', 'publishable'))
      for (const scopes of choices(['*']))
        for (const allowed_origins of choices(['https://a.example']))
          for (const client_target of choices('browser', 'native-ios', 'native-android')) {
            const given = JSON.parse(
              JSON.stringify({ name: 'k', type, scopes, allowed_origins, client_target }),
            )
            expect([given, fits(given)]).toEqual([given, isAccepted(given)])
            seen.add(isAccepted(given))
          }
    expect(seen).toEqual(new Set([true, false]))
  })

  function isAccepted(given: unknown): boolean {
    const { client_target: target, ...rest } = createKeyBody.parse(given)
    const client_target = target && storedTarget(target)
    try {
      completeKeyRequest({ ...rest, environment: 'live', client_target })
      return true
    } catch (error) {
      if (error instanceof ApiError && error.status === 422) return false
      throw error
    }
  }

  test('on a session that is opened', () => {
    const fits = bodyCheck('openCollectSession')
    const page = { url: 'https://shop.example/', referrer: null }
    for (const platform of ['web', 'ios', 'android'])
      for (const more of [{}, { page: null }, { page }]) {
        const sdk = { name: 'n', version: '1', platform }
        const given = { clientPublicKey: 'A'.repeat(43), sdk, ...more }
        expect([given, fits(given)]).toEqual([given, openBodySchema.safeParse(given).success])
      }
  })
})
