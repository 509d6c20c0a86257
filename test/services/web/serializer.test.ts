import { inflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { createSerializer } from '../../../services/web/sdk/serializer.ts'
import { toStoredBlocks } from '../../../services/web/sdk/stored-blocks.ts'

const { encode, jsonOf } = createSerializer({
  isArray: Array.isArray,
  keysOf: Object.keys,
  codeAt: (text, at) => text.charCodeAt(at),
})

const text = (value: unknown) => Buffer.from(encode(value)).toString('utf8')

describe('the serializer', () => {
  test('has the output of JSON.stringify', () => {
    const values = fc.jsonValue({ stringUnit: 'binary', noUnicodeString: false })
    fc.assert(
      fc.property(values, (value) => {
        expect(text(value)).toBe(JSON.stringify(value))
      }),
    )
  })

  test('has the output of JSON.stringify for text with lone surrogates', () => {
    const unit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code))
    const any = fc.array(unit).map((units) => units.join(''))
    fc.assert(
      fc.property(any, (value) => {
        expect(text(value)).toBe(JSON.stringify(value))
      }),
    )
  })

  test.each([
    [[1, undefined, Number.NaN, Infinity, -0, 1e21, 1e-7, () => 1]],
    [{ a: undefined, b: null, c: [], d: {}, e: [[]], f: 'x', g: () => 1, h: false }],
    ['\u2028\u2029\u007f\u0000\u001f"\\/\ud83d\ude00\ud83d'],
    [
      Object.create(
        { inherited: 1 },
        { own: { value: 2, enumerable: true }, hidden: { value: 3 } },
      ),
    ],
  ])('has the output of JSON.stringify for %j', (value) =>
    expect(text(value)).toBe(JSON.stringify(value)),
  )

  test('returns undefined for a value that JSON cannot represent', () =>
    expect(jsonOf(undefined)).toBeUndefined())
})

describe('a page with modified prototypes', () => {
  const { stringify } = JSON
  const restore = () => {
    JSON.stringify = stringify
    for (const owner of [Object.prototype, String.prototype, Array.prototype])
      Reflect.deleteProperty(owner, 'toJSON')
    Reflect.deleteProperty(Object.prototype, 'planted')
    Reflect.deleteProperty(Array.prototype, '0')
  }
  afterEach(restore)

  test('cannot change the output', () => {
    const value = { webdriver: true, globals: ['a', 'b'], name: 'ü' }
    const expected = stringify(value)
    const toJSON = { value: () => 'rewritten', configurable: true }
    for (const owner of [Object.prototype, String.prototype, Array.prototype])
      Object.defineProperty(owner, 'toJSON', toJSON)
    const planted = { value: 1, enumerable: true, configurable: true }
    Object.defineProperty(Object.prototype, 'planted', planted)
    Object.defineProperty(Array.prototype, '0', { set() {}, configurable: true })
    JSON.stringify = () => '{}'
    const written = new TextDecoder().decode(encode(value))
    restore()
    expect(written).toBe(expected)
  })
})

test.each([0, 1, 65_535, 65_536, 200_000])(
  '%i bytes in stored blocks inflate to the same bytes',
  (length) => {
    const bytes = Uint8Array.from({ length }, (_, i) => i % 251)
    expect(Buffer.compare(inflateRawSync(toStoredBlocks(bytes)), Buffer.from(bytes))).toBe(0)
  },
)
