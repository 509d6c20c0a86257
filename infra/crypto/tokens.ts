import { createHmac } from 'node:crypto'
import { base32Characters, checksum, type Random } from '../ids.ts'
import type { Keyring } from './keyring.ts'

// Formats of Gate's credentials and of the console's codes and sessions, by prefix. `gtpoll_` has 26 random characters
// (130 bits), as published clients expect. The others have 32 (160 bits) and a checksum of 8, which detects a typo
// without a lookup.
const formats = {
  gtpoll: { random: 26, checksum: 0 },
  agt: { random: 32, checksum: 8 },
  gtapr: { random: 32, checksum: 8 },
  gtack: { random: 32, checksum: 8 },
  gtcode: { random: 32, checksum: 8 },
  gtrcpt: { random: 32, checksum: 8 },
  conlog: { random: 32, checksum: 8 },
  contok: { random: 32, checksum: 8 },
} as const

export type TokenKind = keyof typeof formats
export type Token<K extends TokenKind> = `${K}_${string}`

export function generateToken<K extends TokenKind>(kind: K, random: Random): Token<K> {
  const { random: length, checksum: check } = formats[kind]
  const secret = base32Characters(random(length))
  return `${kind}_${secret}${checksum(`${kind}_${secret}`, check)}`
}

export function isToken<K extends TokenKind>(kind: K, text: string): text is Token<K> {
  const { random: length, checksum: check } = formats[kind]
  const stemLength = kind.length + 1 + length
  if (text.length !== stemLength + check || !text.startsWith(`${kind}_`)) return false
  if (!/^[0-9a-hjkmnp-tv-z]+$/.test(text.slice(kind.length + 1))) return false
  return checksum(text.slice(0, stemLength), check) === text.slice(stemLength)
}

/** Returns the token's possible stored hashes: HMAC-SHA256 (hex) under each master key, current first. */
export function tokenHashes(keyring: Keyring, token: string): [string, ...string[]] {
  const older = keyring.all.filter(({ id }) => id !== keyring.current.id)
  const hash = (master: Keyring['current']) =>
    createHmac('sha256', master.derive('gate-token-lookup')).update(token).digest('hex')
  return [hash(keyring.current), ...older.map(hash)]
}

/** Returns true if the stored hash is one of the token's. */
export function matchesTokenHash(
  keyring: Keyring,
  { token, hash }: { token: string; hash: string | null },
): boolean {
  // Needs no constant-time comparison: without the master key an attacker can't choose the hash.
  return hash !== null && tokenHashes(keyring, token).includes(hash)
}
