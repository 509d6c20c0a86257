import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createDataKey, dataKeyBytes } from '../../../infra/crypto/sealing.ts'

const secret = randomBytes(dataKeyBytes)
const plaintext = Buffer.from('credentials')
const context = 'gate_1'

test('a data key opens what it sealed, in the same context only', () => {
  const sealed = createDataKey(secret).seal(plaintext, { context, random: randomBytes })
  expect(createDataKey(secret).open(sealed, { context })).toEqual(plaintext)
  expect(createDataKey(secret).open(sealed, { context: 'gate_2' })).toBeUndefined()
  expect(createDataKey(randomBytes(dataKeyBytes)).open(sealed, { context })).toBeUndefined()
})

test('altered or truncated ciphertext does not open', () => {
  const key = createDataKey(secret)
  const sealed = key.seal(plaintext, { context, random: randomBytes })
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(key.open(changed, { context })).toBeUndefined()
    expect(key.open(sealed.subarray(0, at), { context })).toBeUndefined()
  }
})
