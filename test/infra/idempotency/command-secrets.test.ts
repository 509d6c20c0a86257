import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { commandSecrets } from '../../../infra/idempotency/command-secrets.ts'

const [master, another] = [1, 2].map(
  () => createKeyring(randomBytes(32).toString('base64')).current,
)
if (!master || !another) throw new Error('two master keys')

const seeds = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes))
const names = fc.record({ scope: fc.string(), key: fc.string({ minLength: 1 }), seed: seeds })

describe('the randomness of a command', () => {
  const draw = (random: (size: number) => Buffer, sizes: number[]) =>
    sizes.map((size) => random(size))
  const sizes = fc.array(fc.integer({ min: 0, max: 100 }), { maxLength: 20 })

  test('is one stream of bytes, the same in every repetition however it is cut', () => {
    fc.assert(
      fc.property(names, sizes, (name, sizes) => {
        const cut = draw(commandSecrets(master, name).random, sizes)
        const total = sizes.reduce((sum, size) => sum + size, 0)
        expect(cut.map(({ length }) => length)).toEqual(sizes)
        expect(Buffer.concat(cut)).toEqual(commandSecrets(master, name).random(total))
      }),
      { verbose: true },
    )
  })

  test('never hands the same block out twice', () => {
    const { random } = commandSecrets(master, { scope: 's', key: 'k', seed: randomBytes(16) })
    const blocks = Array.from({ length: 1000 }, () => random(32).toString('hex'))
    expect(new Set(blocks).size).toBe(1000)
  })

  test('cannot be changed through what was handed out before', () => {
    const name = { scope: 's', key: 'k', seed: Buffer.alloc(16) }
    const { random } = commandSecrets(master, name)
    random(5).fill(0)
    const again = commandSecrets(master, name).random
    again(5)
    expect(random(40)).toEqual(again(40))
  })
})

describe('what follows from a command', () => {
  const answer = { status: 201, text: '{"revealed_key":"Zoë"}' }

  test('is found again with the same master key, seed, scope and key of the caller', () => {
    fc.assert(
      fc.property(names, fc.string(), (name, text) => {
        const [one, again] = [commandSecrets(master, name), commandSecrets(master, name)]
        expect(again.open(one.seal(answer, randomBytes))).toEqual(answer)
        expect(again.mac(text)).toEqual(one.mac(text))
      }),
      { verbose: true },
    )
  })

  test('is another one where any of them differs, the key of the caller too', () => {
    fc.assert(
      fc.property(
        names,
        names,
        fc.constantFrom('scope', 'key', 'seed', 'master'),
        (name, other, what) => {
          const changed = what === 'master' ? name : { ...name, [what]: other[what] }
          fc.pre(what === 'master' || JSON.stringify(changed) !== JSON.stringify(name))
          const one = commandSecrets(master, name)
          const two = commandSecrets(what === 'master' ? another : master, changed)
          expect(two.random(32)).not.toEqual(one.random(32))
          expect(two.mac('{}')).not.toEqual(one.mac('{}'))
          expect(() => two.open(one.seal(answer, randomBytes))).toThrow('failed to decrypt')
        },
      ),
      { verbose: true },
    )
  })
})
