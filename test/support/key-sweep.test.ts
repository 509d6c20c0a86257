import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { generateApiKey } from '../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import { generateToken } from '../../infra/crypto/tokens.ts'
import { refuseSecretKeys } from './key-sweep.ts'
import { createTestDatabase } from './postgres.ts'

const keyring = createKeyring(randomBytes(32).toString('base64'))
const { key } = generateApiKey({ type: 'secret', environment: 'test', keyring, random: randomBytes })
const mistyped = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')

/** A database that holds the value, as text and in a column of bytes, is dropped. */
async function dropWith(values: { text?: string; bytes?: string }): Promise<void> {
  const database = await createTestDatabase()
  await database.pool.query('create table one (id int, words text, more jsonb, bytes bytea)')
  await database.pool.query('insert into one values (1, null, $1, $2)', [
    JSON.stringify({ within: [values.text ?? ''] }),
    Buffer.from(`xy${values.bytes ?? ''}z`),
  ])
  await database.drop()
}

describe('dropping a test database', () => {
  test('fails when a secret key is in it, and does not repeat the key', async () => {
    for (const values of [{ text: `"${key}"` }, { bytes: key }]) {
      const failure = await dropWith(values).catch((error: Error) => error.message)
      expect(failure).toBe('1 secret keys are in table public.one')
    }
  })

  test('takes what only looks like one', () =>
    dropWith({ text: mistyped, bytes: 'sk_live_made_up_for_a_test' }))
})

test.each(['gtpoll', 'agt', 'gtapr', 'gtack', 'gtcode'] as const)(
  'so does it with a %s token',
  async (kind) => {
    const token = generateToken(kind, randomBytes)
    for (const values of [{ text: `"${token}"` }, { bytes: token }])
      await expect(dropWith(values)).rejects.toThrow('1 secret keys are in table public.one')
  },
)

test('a text with a secret key is refused', () => {
  expect(() => refuseSecretKeys('output', `{"key":"${key}"}`)).toThrow('1 secret keys are in output')
  refuseSecretKeys('output', mistyped)
})
