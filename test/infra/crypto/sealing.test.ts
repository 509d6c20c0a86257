import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createDataKey, dataKeyBytes } from '../../../infra/crypto/sealing.ts'

const secret = randomBytes(dataKeyBytes)
const plaintext = Buffer.from('credentials')
const context = 'gate_1'

test('what a data key sealed it opens, in the same context only', () => {
  const sealed = createDataKey(secret).seal(plaintext, { context, random: randomBytes })
  expect(createDataKey(secret).open(sealed, { context })).toEqual(plaintext)
  expect(createDataKey(secret).open(sealed, { context: 'gate_2' })).toBeUndefined()
  expect(createDataKey(randomBytes(dataKeyBytes)).open(sealed, { context })).toBeUndefined()
})

test('what was changed or cut is not opened', () => {
  const key = createDataKey(secret)
  const sealed = key.seal(plaintext, { context, random: randomBytes })
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(key.open(changed, { context })).toBeUndefined()
    expect(key.open(sealed.subarray(0, at), { context })).toBeUndefined()
  }
})

test('what is drawn from it is the same each time, and another for each purpose and key', () => {
  const draw = (bytes: Buffer, purpose: string) => createDataKey(bytes).random(purpose)(32).toString('hex')
  expect(draw(secret, 'agent-token')).toBe(draw(secret, 'agent-token'))
  expect(draw(secret, 'agent-token')).not.toBe(draw(secret, 'ack-token'))
  expect(draw(secret, 'agent-token')).not.toBe(draw(randomBytes(dataKeyBytes), 'agent-token'))
  const stream = createDataKey(secret).random('organization')
  expect(stream(10)).not.toEqual(stream(10))
})
