import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { commandRandom } from '../../../infra/idempotency/idempotency.ts'
import { answerKeptMs, judge, type StoredCommand } from '../../../infra/idempotency/store.ts'

const now = 1_760_000_000_000
const requestMac = Buffer.from('this request')
const row: StoredCommand = {
  id: Buffer.from('id'),
  masterKeyId: 'm',
  requestMac,
  seed: Buffer.alloc(16),
  createdAt: now - 1000,
  expiresAt: now - 1000 + answerKeptMs,
  lockedUntil: 0,
  answer: null,
}
const answer = Buffer.from('sealed')
const held = { lockedUntil: now + 1 }
const expired = { expiresAt: now }
const other = { requestMac: Buffer.from('another one') }

describe('a request with a key', () => {
  test.each([
    ['starts where nothing is remembered', undefined, 'start'],
    ['starts anew once what is remembered has expired', { ...row, answer, ...expired }, 'start'],
    ['starts anew after expiry even if it is another request', { ...row, ...other, ...expired }, 'start'],
    ['waits for one that runs although its time is over', { ...row, ...held, ...expired }, 'in_flight'],
    ['gets the answer there is', { ...row, answer }, 'replay'],
    ['waits while the first runs', { ...row, ...held }, 'in_flight'],
    ['goes on where nobody runs it any more', { ...row, lockedUntil: now }, 'resume'],
    ['is refused when the key was for another request', { ...row, ...other, answer }, 'other_request'],
    ['is refused when another request runs under the key', { ...row, ...other, ...held }, 'other_request'],
  ])('%s', (_, given, then) => {
    expect(judge(given, { requestMac, now })).toBe(then)
  })
})

describe('the randomness of a command', () => {
  const [master, another] = [1, 2].map(() => createKeyring(randomBytes(32).toString('base64')).current)
  if (!master || !another) throw new Error('two master keys')
  const draw = (random: (size: number) => Buffer, sizes: number[]) => sizes.map((size) => random(size))
  const sizes = fc.array(fc.integer({ min: 0, max: 100 }), { maxLength: 20 })
  const seed = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes))

  test('is one stream of bytes, the same in every repetition however it is cut', () => {
    fc.assert(
      fc.property(seed, sizes, (seed, sizes) => {
        const cut = draw(commandRandom(master, seed), sizes)
        const total = sizes.reduce((sum, size) => sum + size, 0)
        expect(cut.map(({ length }) => length)).toEqual(sizes)
        expect(Buffer.concat(cut)).toEqual(commandRandom(master, seed)(total))
      }),
      { verbose: true },
    )
  })

  test('differs from one seed to another and from one master key to another', () => {
    fc.assert(
      fc.property(seed, seed, (one, two) => {
        fc.pre(!one.equals(two))
        const bytes = commandRandom(master, one)(32)
        expect(commandRandom(master, two)(32)).not.toEqual(bytes)
        expect(commandRandom(another, one)(32)).not.toEqual(bytes)
      }),
      { verbose: true },
    )
  })

  test('never hands the same block out twice', () => {
    const stream = commandRandom(master, randomBytes(16))
    const blocks = Array.from({ length: 1000 }, () => stream(32).toString('hex'))
    expect(new Set(blocks).size).toBe(1000)
  })

  test('cannot be changed through what was handed out before', () => {
    const random = commandRandom(master, Buffer.alloc(16))
    random(5).fill(0)
    const again = commandRandom(master, Buffer.alloc(16))
    again(5)
    expect(random(40)).toEqual(again(40))
  })
})
