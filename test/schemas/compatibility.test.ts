import type { Schema } from 'avsc'
import { expect, test } from 'vitest'
import { compatibilityProblems } from '../../schemas/compatibility.ts'
import { readFactsSchemas, readSchemaFiles } from '../../schemas/generate.ts'

const versionsByEvent = Map.groupBy(
  [...readSchemaFiles(), ...readFactsSchemas()],
  (file) => `${file.topic}/${file.name}`,
)

test.each([...versionsByEvent])('%s: every version reads every other', (_, files) => {
  expect(files.map((file) => file.version)).toEqual(files.map((_file, i) => i + 1))
  expect(compatibilityProblems(files.map((file) => file.schema as Schema))).toEqual([])
})

interface Field {
  name: string
  type: unknown
  default?: unknown
}

const base: Field[] = [{ name: 'id', type: 'string' }]
const event = (...fields: Field[]) =>
  ({ type: 'record', name: 'Tested', fields: [...base, ...fields] }) as Schema
const kind = (symbols: string[], rest: object = {}) => ({
  name: 'kind',
  type: { type: 'enum', name: 'Kind', symbols, ...rest },
})

const good: [string, Schema[]][] = [
  [
    'a field with a default is added',
    [event(), event({ name: 'more', type: 'string', default: '' })],
  ],
  [
    'a field with a default is removed',
    [event({ name: 'more', type: 'string', default: '' }), event()],
  ],
  [
    'a symbol is added to an enum with a default',
    [event(kind(['a'], { default: 'a' })), event(kind(['a', 'b'], { default: 'a' }))],
  ],
]

const bad: [string, Schema[], RegExp][] = [
  [
    'a field without a default is added',
    [event(), event({ name: 'more', type: 'string' })],
    /v2 cannot read v1/,
  ],
  [
    'a field without a default is removed',
    [event({ name: 'more', type: 'string' }), event()],
    /v1 cannot read v2/,
  ],
  [
    'a field is renamed',
    [event({ name: 'a', type: 'int' }), event({ name: 'b', type: 'int' })],
    /v2 cannot read v1/,
  ],
  [
    'a type changes',
    [event({ name: 'n', type: 'string' }), event({ name: 'n', type: 'int' })],
    /v2 cannot read v1/,
  ],
  [
    'a type widens, which only one side can read',
    [event({ name: 'n', type: 'int' }), event({ name: 'n', type: 'long' })],
    /v1 cannot read v2/,
  ],
  [
    'a symbol is added to an enum without a default',
    [event(kind(['a'])), event(kind(['a', 'b']))],
    /v1 cannot read v2/,
  ],
  ['an enum has no default', [event(kind(['a']))], /v1: enum Kind has no default/],
  [
    'only the first and the third version disagree',
    [
      event({ name: 'n', type: 'int', default: 0 }),
      event(),
      event({ name: 'n', type: 'string', default: '' }),
    ],
    /v3 cannot read v1/,
  ],
]

test.each(good)('is compatible when %s', (_, versions) => {
  expect(compatibilityProblems(versions)).toEqual([])
})

test.each(bad)('is not compatible when %s', (_, versions, problem) => {
  expect(compatibilityProblems(versions).join('\n')).toMatch(problem)
})
