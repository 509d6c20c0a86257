import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  generateApiKey,
  lookupHashes,
  openSecretHash,
  parseApiKey,
  sealSecretHash,
  secretHashOf,
} from '../../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { base32Alphabet } from '../../../infra/ids.ts'

const older = randomBytes(32).toString('base64')
const newer = randomBytes(32).toString('base64')
const keyring = createKeyring(older)
const rotated = createKeyring(`${newer},${older}`)

const kinds = (['publishable', 'secret'] as const).flatMap((type) =>
  (['live', 'test'] as const).map((environment) => ({ type, environment })),
)

const generated = (kind: (typeof kinds)[number] = { type: 'secret', environment: 'live' }) =>
  generateApiKey({ ...kind, keyring, random: randomBytes })

test.each(kinds)('a $type $environment key is parsed to its kind', (kind) => {
  const { key, preview, displayKey } = generated(kind)
  expect(key).toMatch(new RegExp(`^${kind.type === 'secret' ? 'sk' : 'pk'}_${kind.environment}_`))
  expect(parseApiKey(key)).toEqual(kind)
  expect(displayKey).toBe(kind.type === 'publishable' ? key : null)
  expect(preview).not.toContain(key.slice(12, -4))
})

test('the checksum detects every single-character typo', () => {
  const { key } = generated()
  for (let at = 0; at < key.length; at++) {
    const other = [...base32Alphabet].find((character) => character !== key[at])
    expect(parseApiKey(key.slice(0, at) + other + key.slice(at + 1))).toBeUndefined()
  }
  for (const text of [`${key} `, `${key}\n`, key.toUpperCase()])
    expect(parseApiKey(text)).toBeUndefined()
})

test('a key is found after a rotation of the master key', () => {
  const { key, lookupHash } = generated()
  expect(lookupHashes(keyring, key)).toEqual([lookupHash])
  expect(lookupHashes(rotated, key)).toHaveLength(2)
  expect(lookupHashes(rotated, key)[1]).toBe(lookupHash)
})

test('a secret hash opens only for its own key id, also under an older master key', () => {
  const { key } = generated()
  const sealed = sealSecretHash({ keyring, key, keyId: 'key_a', random: randomBytes })
  expect(sealed.toString('hex')).not.toContain(secretHashOf(key))
  expect(openSecretHash(sealed, { keyring: rotated, keyId: 'key_a' })).toBe(secretHashOf(key))
  expect(openSecretHash(sealed, { keyring, keyId: 'key_b' })).toBeUndefined()
  const other = { keyring: createKeyring(newer), keyId: 'key_a' } as const
  expect(openSecretHash(sealed, other)).toBeUndefined()
})
