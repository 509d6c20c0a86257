import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { base32, base32Alphabet, derivedId, isId, timeOrderedId } from '../../infra/ids.ts'

/** The reference implementation: 16 bytes as one number, in base 32. */
function reference(bytes: Buffer): string {
  let value = BigInt(`0x${bytes.toString('hex')}`)
  return Array.from({ length: 26 }, () => {
    const digit = base32Alphabet[Number(value % 32n)]
    value /= 32n
    return digit
  })
    .reverse()
    .join('')
}

describe('base32', () => {
  test.each([
    ['zeros', Buffer.alloc(16)],
    ['ones', Buffer.alloc(16, 0xff)],
    ['a high bit', Buffer.from('80000000000000000000000000000001', 'hex')],
  ])('%s', (_, bytes) => expect(base32(bytes)).toBe(reference(bytes)))

  test('any 16 bytes', () => {
    for (let round = 0; round < 200; round++) {
      const bytes = randomBytes(16)
      expect(base32(bytes), bytes.toString('hex')).toBe(reference(bytes))
    }
  })

  test('encodes only the first 16 bytes', () => {
    const bytes = randomBytes(32)
    expect(base32(bytes)).toBe(base32(bytes.subarray(0, 16)))
  })
})

test('time-ordered ids sort by time', () => {
  const ids = [1, 2, 1_800_000_000_000, 1_800_000_000_001].map((now) =>
    timeOrderedId('sid', now, randomBytes),
  )
  expect([...ids].sort()).toEqual(ids)
  expect(ids.every((id) => isId('sid', id))).toBe(true)
})

test('a derived id depends on its parts and their boundaries', () => {
  expect(derivedId('evt', 'a', 'b')).toBe(derivedId('evt', 'a', 'b'))
  expect(derivedId('evt', 'a', 'b')).not.toBe(derivedId('evt', 'ab', ''))
})
