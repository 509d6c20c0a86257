import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import {
  generateToken,
  isToken,
  matchesTokenHash,
  type TokenKind,
  tokenHashes,
} from '../../../infra/crypto/tokens.ts'
import { base32Alphabet } from '../../../infra/ids.ts'

const older = randomBytes(32).toString('base64')
const newer = randomBytes(32).toString('base64')
const keyring = createKeyring(older)
const kinds = ['gtpoll', 'agt', 'gtapr', 'gtack', 'gtcode'] as const satisfies TokenKind[]

test.each(kinds)('a %s token is valid for its own kind only', (kind) => {
  const token = generateToken(kind, randomBytes)
  expect(token).toMatch(new RegExp(`^${kind}_[0-9a-hjkmnp-tv-z]+$`))
  expect(kinds.filter((other) => isToken(other, token))).toEqual([kind])
})

test('a poll token has the 26 characters that clients expect, an agent token at least 40', () => {
  expect(generateToken('gtpoll', randomBytes)).toHaveLength('gtpoll_'.length + 26)
  expect(generateToken('agt', randomBytes).length).toBeGreaterThanOrEqual('agt_'.length + 40)
})

test.each(kinds.filter((kind) => kind !== 'gtpoll'))(
  'the checksum of a %s token detects every typo',
  (kind) => {
    const token = generateToken(kind, randomBytes)
    for (let at = 0; at < token.length; at++) {
      const other = [...base32Alphabet].find((character) => character !== token[at])
      expect(isToken(kind, token.slice(0, at) + other + token.slice(at + 1))).toBe(false)
    }
  },
)

test('other texts are not tokens', () => {
  const token = generateToken('gtpoll', randomBytes)
  for (const text of ['', 'gtpoll_', `${token}0`, `${token}\n`, ` ${token}`, token.toUpperCase()])
    expect(isToken('gtpoll', text)).toBe(false)
})

test('a token matches a hash under an earlier master key', () => {
  const token = generateToken('agt', randomBytes)
  const [hash] = tokenHashes(keyring, token)
  const rotated = createKeyring(`${newer},${older}`)
  expect(matchesTokenHash(rotated, { token, hash })).toBe(true)
  expect(tokenHashes(rotated, token)[0]).not.toBe(hash)
  expect(matchesTokenHash(createKeyring(newer), { token, hash })).toBe(false)
  expect(matchesTokenHash(keyring, { token: generateToken('agt', randomBytes), hash })).toBe(false)
  expect(matchesTokenHash(keyring, { token, hash: null })).toBe(false)
})
