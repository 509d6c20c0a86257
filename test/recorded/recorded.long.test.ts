import path from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { print, readAnswers } from './answers.ts'
import type { Recorded } from './recorder.ts'
import { playScenario } from './scenario.ts'

const expected = await readAnswers()
let answers: Map<string, Recorded>

beforeAll(async () => {
  const recorded = await playScenario(path.resolve(import.meta.dirname, '../..'))
  answers = new Map(recorded.map((one) => [one.name, one]))
}, 300_000)

describe('every answer is the recorded one', () => {
  test.each(expected)('$name: $method $path', (one) => {
    // As text: the order of members is part of the bytes.
    expect(print(answers.get(one.name))).toBe(print(one))
  })

  test('nothing is answered that was not recorded', () => {
    expect([...answers.keys()]).toEqual(expected.map(({ name }) => name))
  })
})

/** It looks a public domain up: test/services/gate/registry/domain-routes.test.ts has its success. */
const withoutSuccess = '/v1/gate/services/{serviceId}/domain/verify'

const description = z.object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })

describe('every operation of /openapi.json', () => {
  const document = description.parse(expected.find(({ path: at }) => at === '/openapi.json')?.json)
  const operations = Object.entries(document.paths).flatMap(([template, methods]) =>
    Object.keys(methods).map((method) => ({ method: method.toUpperCase(), template })),
  )

  test.each(operations)(
    '$method $template has a recorded success and a recorded refusal',
    ({ method, template }) => {
      const pattern = new RegExp(`^${template.replace(/\{\w+\}/g, '[^/?]+')}(?:\\?.*)?$`)
      const asked = expected.filter((one) => pattern.test(one.path))
      const succeeds = asked.some((one) => one.method === method && one.status < 300)
      expect(succeeds).toBe(template !== withoutSuccess)
      expect(asked.some((one) => one.status >= 400)).toBe(true)
    },
  )
})
