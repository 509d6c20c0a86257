import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { generateSecret, hasSecret } from '../../../../services/webhooks/endpoints/commands.ts'
import { endpoint, endpointId } from './given.ts'

const [older, newer] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
const random = (size: number) => Buffer.alloc(size, 7)

function endpointWith(sealed: Buffer) {
  return { ...endpoint, secrets: [{ sealed, created_at: 1, expires_at: null }] }
}

test('a repeated command finds its secret, although another master key is the current one by now', () => {
  const before = createKeyring(older)
  const after = createKeyring(`${newer},${older}`)
  const first = generateSecret({ keyring: before, random }, endpointId)
  const again = generateSecret({ keyring: after, random }, endpointId)
  expect(again.signingSecret).toBe(first.signingSecret)
  expect(again.sealedSecret).not.toEqual(first.sealedSecret)
  const { signingSecret } = again
  expect(hasSecret(endpointWith(first.sealedSecret), { keyring: after, signingSecret })).toBe(true)
})

test('another secret, another endpoint’s, or one of a master key that is gone is not it', () => {
  const keyring = createKeyring(older)
  const { signingSecret, sealedSecret } = generateSecret(
    { keyring, random: randomBytes },
    endpointId,
  )
  const other = generateSecret({ keyring, random: randomBytes }, endpointId)
  const foreign = generateSecret({ keyring, random }, `we_${'9'.repeat(32)}`)
  expect(hasSecret(endpointWith(sealedSecret), { keyring, signingSecret })).toBe(true)
  expect(hasSecret(endpointWith(other.sealedSecret), { keyring, signingSecret })).toBe(false)
  const { signingSecret: foreignSecret } = foreign
  expect(
    hasSecret(endpointWith(foreign.sealedSecret), { keyring, signingSecret: foreignSecret }),
  ).toBe(false)
  const lost = createKeyring(newer)
  expect(hasSecret(endpointWith(sealedSecret), { keyring: lost, signingSecret })).toBe(false)
})
