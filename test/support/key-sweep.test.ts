import { randomBytes } from 'node:crypto'
import { describe, expect, inject, test } from 'vitest'
import { generateApiKey } from '../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import { generateToken } from '../../infra/crypto/tokens.ts'
import { refuseSecretKeys, sweepTestDatabases } from './key-sweep.ts'
import { createTestDatabase } from './postgres.ts'

const keyring = createKeyring(randomBytes(32).toString('base64'))
const { key } = generateApiKey({
  type: 'secret',
  environment: 'test',
  keyring,
  random: randomBytes,
})
const mistyped = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')

/** Returns the sweep's complaint about a database with the value in a text or bytea column. */
async function sweepWith(values: { text?: string; bytes?: string }): Promise<string | undefined> {
  const database = await createTestDatabase({ empty: true })
  await database.pool.query('create table one (id int, words text, more jsonb, bytes bytea)')
  await database.pool.query('insert into one values (1, null, $1, $2)', [
    JSON.stringify({ within: [values.text ?? ''] }),
    Buffer.from(`xy${values.bytes ?? ''}z`),
  ])
  try {
    return await sweepTestDatabases(inject('postgresUrl'), {
      like: new URL(database.url).pathname.slice(1),
    }).then(
      () => undefined,
      (error: Error) => error.message.replace(/test_[0-9a-f]{12}/, 'test_name'),
    )
  } finally {
    // Otherwise the sweep at the end of the run would find it, too.
    await database.pool.query('drop table one')
    await database.drop()
  }
}

describe('the databases of a test run', () => {
  test('must not hold a secret key; where it is and whose database it is are told, and never the key', async () => {
    for (const values of [{ text: `"${key}"` }, { bytes: key }]) {
      const told = `1 secret keys are in table public.one of database test_name, made by ${import.meta.filename}`
      expect(await sweepWith(values)).toBe(told)
    }
  })

  test('may hold what only looks like one', async () => {
    expect(await sweepWith({ text: mistyped, bytes: 'sk_live_made_up_for_a_test' })).toBeUndefined()
  })

  test.each(['gtpoll', 'agt', 'gtapr', 'gtack', 'gtcode'] as const)(
    'must not hold a %s token',
    async (kind) => {
      const token = generateToken(kind, randomBytes)
      for (const values of [{ text: `"${token}"` }, { bytes: token }])
        expect(await sweepWith(values)).toContain('1 secret keys are in table public.one')
    },
  )
})

test('a text with a secret key is refused', () => {
  expect(() => refuseSecretKeys('output', `{"key":"${key}"}`)).toThrow(
    '1 secret keys are in output',
  )
  refuseSecretKeys('output', mistyped)
})
