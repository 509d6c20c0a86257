import fc from 'fast-check'
import { expect, it } from 'vitest'
import { behaviorSchema, observationsSchema, snapshotSchema } from '../../schemas/observations.ts'

const read = (snapshot: unknown) => snapshotSchema.parse(snapshot)

it('observations with an unknown version throw', () => {
  for (const other of [null, [], 'text', {}, { version: 2 }, { version: '1' }]) {
    expect(() => observationsSchema.parse(other)).toThrow('version 1')
  }
  expect(observationsSchema.parse({ version: 1 })).toEqual({ version: 1, elapsed_ms: null })
})

it('null and values of the wrong type count as not observed and do not affect others', () => {
  expect(
    observationsSchema.parse({ version: 1, elapsed_ms: 7, snapshot: null, behavior: 'x' }),
  ).toEqual({
    version: 1,
    elapsed_ms: 7,
  })
  const { navigator, environment, native } = read({
    navigator: {
      user_agent: 'UA',
      platform: 5,
      hardware_concurrency: 2 ** 31,
      max_touch_points: 1.5,
    },
    environment: [],
    native: 'x',
  })
  expect(navigator).toMatchObject({ user_agent: 'UA', platform: null, languages: [] })
  expect(navigator).toMatchObject({ hardware_concurrency: null, max_touch_points: null })
  expect(environment.screen_width).toBeNull()
  expect(native).toBeNull()
})

it('a text that is too long is dropped, and U+0000 is removed', () => {
  const { navigator } = read({ navigator: { platform: 'a\0b', vendor: 'v'.repeat(513) } })
  expect(navigator).toMatchObject({ platform: 'ab', vendor: null })
})

it('a list with an invalid item, or too many items, is empty', () => {
  const { automation, navigator } = read({
    automation: {
      globals: ['a', 1],
      document_attributes: Array.from({ length: 101 }, () => 'x'),
    },
    navigator: { languages: ['de', 'en'], brands: [{ brand: 'B' }, null] },
  })
  expect(automation).toMatchObject({ globals: [], document_attributes: [] })
  expect(navigator.languages).toEqual(['de', 'en'])
  expect(navigator.brands).toEqual([
    { brand: 'B', version: null },
    { brand: null, version: null },
  ])
})

it('hashes are texts or numbers, and counts have short names', () => {
  expect(
    read({ canvas: { hash: 12.5, text_hash: 'abc', geometry_hash: {} } }).canvas,
  ).toMatchObject({
    hash: 12.5,
    text_hash: 'abc',
    geometry_hash: null,
  })
  const kinds = (counts_by_kind: unknown) =>
    read({ media: { counts_by_kind } }).media.counts_by_kind
  expect(kinds({ audioinput: 1, videoinput: 0 })).toEqual({ audioinput: 1, videoinput: 0 })
  for (const bad of [{ a: -1 }, { 'a b': 1 }, JSON.parse('{"__proto__":1}'), [1], 'x'])
    expect(kinds(bad)).toEqual({})
  expect(kinds(Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`k${i}`, 1])))).toEqual({})
})

it('negative counts and sizes are dropped; other negative numbers are kept', () => {
  const groups: Record<string, Record<string, unknown> | null> = read({ native: {} })
  const members = Object.entries(groups).flatMap(([group, all]) =>
    Object.keys(all ?? {}).map((member) => ({ group, member })),
  )
  const readAs = (group: string, member: string, value: number) => {
    const shown: typeof groups = read({ [group]: { [member]: value } })
    return shown[group]?.[member]
  }
  const negative = members
    .filter(({ group, member }) => readAs(group, member, -1) === -1)
    .map(({ group, member }) => `${group}.${member}`)
  // A hash can be any number, and the offset is negative east of Greenwich.
  const signed = negative.filter((path) => !path.endsWith('hash'))
  expect(signed).toEqual(['environment.timezone_offset_min'])
  expect(read({ audio: { channel_count: 0, sample_rate: 44_100.5 } }).audio).toMatchObject({
    channel_count: 0,
    sample_rate: 44_100.5,
  })
})

it('parsing never throws, and parsing the result again changes nothing', () => {
  const members = [
    ...Object.keys(snapshotSchema.parse({})),
    ...Object.keys(behaviorSchema.parse({})),
  ]
  const inner = fc.dictionary(
    fc.constantFrom('user_agent', 'hash', 'events', 'languages', 'globals'),
    fc.jsonValue(),
  )
  const any = fc.dictionary(fc.constantFrom(...members), fc.oneof(inner, fc.jsonValue()))
  fc.assert(
    fc.property(any, (value) => {
      for (const schema of [snapshotSchema, behaviorSchema]) {
        const once: unknown = schema.parse(value)
        expect(schema.parse(JSON.parse(JSON.stringify(once)))).toEqual(
          JSON.parse(JSON.stringify(once)),
        )
      }
    }),
    { numRuns: 100 },
  )
})
