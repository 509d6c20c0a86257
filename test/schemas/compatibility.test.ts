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

const event = (...fields: Field[]) =>
  ({
    type: 'record',
    name: 'Tested',
    fields: [{ name: 'id', type: 'string' }, ...fields],
  }) as Schema
const field = (name: string, type: string, rest: { default?: unknown } = {}) =>
  event({ name, type, ...rest })
const kind = (symbols: string[], rest: object = {}) =>
  event({ name: 'kind', type: { type: 'enum', name: 'Kind', symbols, ...rest } })
const withDefault = field('more', 'string', { default: '' })
const firstDefault = { default: 'a' }

const good: [string, Schema[]][] = [
  ['a field with a default is added', [event(), withDefault]],
  ['a field with a default is removed', [withDefault, event()]],
  [
    'a symbol is added to an enum with a default',
    [kind(['a'], firstDefault), kind(['a', 'b'], firstDefault)],
  ],
]

const bad: [string, Schema[], RegExp][] = [
  ['a field without a default is added', [event(), field('more', 'string')], /v2 cannot read v1/],
  ['a field without a default is removed', [field('more', 'string'), event()], /v1 cannot read v2/],
  ['a field is renamed', [field('a', 'int'), field('b', 'int')], /v2 cannot read v1/],
  ['a type changes', [field('n', 'string'), field('n', 'int')], /v2 cannot read v1/],
  [
    'a type widens, which only one side can read',
    [field('n', 'int'), field('n', 'long')],
    /v1 cannot read v2/,
  ],
  [
    'a symbol is added to an enum without a default',
    [kind(['a']), kind(['a', 'b'])],
    /v1 cannot read v2/,
  ],
  ['an enum has no default', [kind(['a'])], /v1: enum Kind has no default/],
  [
    'only the first and the third version disagree',
    [field('n', 'int', { default: 0 }), event(), field('n', 'string', { default: '' })],
    /v3 cannot read v1/,
  ],
]

test.each(good)('is compatible when %s', (_, versions) => {
  expect(compatibilityProblems(versions)).toEqual([])
})

test.each(bad)('is not compatible when %s', (_, versions, problem) => {
  expect(compatibilityProblems(versions).join('\n')).toMatch(problem)
})
