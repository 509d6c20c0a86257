import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { commandSecrets } from '../../../infra/idempotency/command-secrets.ts'

const [master, otherMaster] = [1, 2].map(
  () => createKeyring(randomBytes(32).toString('base64')).current,
)
if (!master || !otherMaster) throw new Error('two master keys')

const seeds = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes))
const names = fc.record({ scope: fc.string(), key: fc.string({ minLength: 1 }), seed: seeds })

describe('random', () => {
  const draw = (random: (size: number) => Buffer, sizes: number[]) =>
    sizes.map((size) => random(size))
  const sizes = fc.array(fc.integer({ min: 0, max: 100 }), { maxLength: 20 })

  test('is the same stream of bytes in every repeat, in chunks of any size', () => {
    fc.assert(
      fc.property(names, sizes, (name, sizes) => {
        const chunks = draw(commandSecrets(master, name).random, sizes)
        const total = sizes.reduce((sum, size) => sum + size, 0)
        expect(chunks.map(({ length }) => length)).toEqual(sizes)
        expect(Buffer.concat(chunks)).toEqual(commandSecrets(master, name).random(total))
      }),
      { verbose: true },
    )
  })

  test('never returns the same block twice', () => {
    const { random } = commandSecrets(master, { scope: 's', key: 'k', seed: randomBytes(16) })
    const blocks = Array.from({ length: 1000 }, () => random(32).toString('hex'))
    expect(new Set(blocks).size).toBe(1000)
  })

  test('does not change if a returned buffer is modified', () => {
    const name = { scope: 's', key: 'k', seed: Buffer.alloc(16) }
    const { random } = commandSecrets(master, name)
    random(5).fill(0)
    const again = commandSecrets(master, name).random
    again(5)
    expect(random(40)).toEqual(again(40))
  })
})

describe('the secrets of a command', () => {
  const response = { status: 201, text: '{"revealed_key":"Zoë"}' }

  test('are the same for the same master key, seed, scope and key of the caller', () => {
    fc.assert(
      fc.property(names, fc.string(), (name, text) => {
        const [first, second] = [commandSecrets(master, name), commandSecrets(master, name)]
        expect(second.open(first.seal(response, randomBytes))).toEqual(response)
        expect(second.mac(text)).toEqual(first.mac(text))
      }),
      { verbose: true },
    )
  })

  test('differ if any of these differs', () => {
    fc.assert(
      fc.property(
        names,
        names,
        fc.constantFrom('scope', 'key', 'seed', 'master'),
        (name, other, part) => {
          const changed = part === 'master' ? name : { ...name, [part]: other[part] }
          fc.pre(part === 'master' || JSON.stringify(changed) !== JSON.stringify(name))
          const first = commandSecrets(master, name)
          const second = commandSecrets(part === 'master' ? otherMaster : master, changed)
          expect(second.random(32)).not.toEqual(first.random(32))
          expect(second.mac('{}')).not.toEqual(first.mac('{}'))
          expect(() => second.open(first.seal(response, randomBytes))).toThrow('failed to decrypt')
        },
      ),
      { verbose: true },
    )
  })
})
