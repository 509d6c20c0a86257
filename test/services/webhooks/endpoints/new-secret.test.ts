import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { generateSecret, hasSecret } from '../../../../services/webhooks/endpoints/commands.ts'
import { endpoint, endpointId } from './fixtures.ts'

const masterKey = () => randomBytes(32).toString('base64')
const [older, newer] = [masterKey(), masterKey()]
const before = createKeyring(older)
const after = createKeyring(`${newer},${older}`)
const lost = createKeyring(newer)
const repeated = (size: number) => Buffer.alloc(size, 7)
const made = generateSecret({ keyring: before, random: repeated }, endpointId)
const again = generateSecret({ keyring: after, random: repeated }, endpointId)
const other = generateSecret({ keyring: before, random: randomBytes }, endpointId)
const foreign = generateSecret({ keyring: before, random: repeated }, `we_${'9'.repeat(32)}`)

test('a repeated command generates the same secret, even if the master key was rotated meanwhile', () => {
  expect(again.signingSecret).toBe(made.signingSecret)
  expect(again.sealedSecret).not.toEqual(made.sealedSecret)
})

test.each([
  ['found under a later master key', made, after, true],
  ['not found if the endpoint has another one', other, before, false],
  ['not found if another endpoint has it', foreign, before, false],
  ['not found if its master key is gone', made, lost, false],
])('its secret is %s', (_, { sealedSecret: sealed }, keyring, has) => {
  const secrets = [{ sealed, created_at: 1, expires_at: null }]
  const { signingSecret } = made
  expect(hasSecret({ ...endpoint, secrets }, { keyring, signingSecret })).toBe(has)
})
