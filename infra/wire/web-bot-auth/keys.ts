import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { isObject } from '../../../schemas/lenient.ts'
import { createLru } from '../../lru.ts'
import { parseJsonOrUndefined } from '../../text.ts'

/** Ed25519 public keys by their thumbprints (RFC 7638, RFC 8037), base64url of 32 bytes. */
export type DirectoryKeys = Record<string, DirectoryKey>

export interface DirectoryKey {
  /** The key, base64url of 32 bytes. */
  x: string
  /** Validity period in epoch milliseconds; null = unlimited. */
  starts_at: number | null
  ends_at: number | null
}

// More keys than any agent rotates through.
const maxKeys = 100
const pointPattern = /^[A-Za-z0-9_-]{43}$/

/**
 * Returns the first hundred Ed25519 keys of a directory (`{"keys":[...]}`,
 * draft-meunier-http-message-signatures-directory). Skips other types and keys not meant for signatures (RFC 7517,
 * `use` and `key_ops`). Returns undefined if the body is not a directory.
 */
export function directoryKeys(body: string): DirectoryKeys | undefined {
  const directory = parseJsonOrUndefined(body)
  const keys = isObject(directory) ? directory.keys : undefined
  if (!Array.isArray(keys)) return undefined
  const usable = keys.flatMap((key) => keyOfJwk(key) ?? [])
  return Object.fromEntries(usable.slice(0, maxKeys).map((key) => [thumbprint(key.x), key]))
}

function keyOfJwk(jwk: unknown): DirectoryKey | undefined {
  if (!isObject(jwk) || jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519' || !isForSignatures(jwk))
    return undefined
  if (typeof jwk.x !== 'string' || !pointPattern.test(jwk.x)) return undefined
  const [starts_at, ends_at] = [jwk.nbf, jwk.exp].map(timeOf)
  // Skips keys with an unreadable limit: ignoring the limit would accept expired keys.
  if (starts_at === undefined || ends_at === undefined) return undefined
  return { x: jwk.x, starts_at, ends_at }
}

const isForSignatures = ({ use = 'sig', key_ops = ['verify'] }: Record<string, unknown>): boolean =>
  use === 'sig' && Array.isArray(key_ops) && key_ops.includes('verify')

// Parses a time in epoch seconds as in a JWT, or in milliseconds, as some agents publish it. Returns null for no limit,
// undefined if the time is unreadable.
function timeOf(value: unknown): number | null | undefined {
  if (value === undefined || value === null) return null
  if (typeof value !== 'number') return undefined
  return value > 1e11 ? value : value * 1000
}

/** Returns true if the key is valid at `at` (epoch milliseconds). */
export const isInForce = ({ starts_at, ends_at }: DirectoryKey, at: number): boolean =>
  (starts_at === null || starts_at <= at) && (ends_at === null || at < ends_at)

const thumbprint = (x: string): string =>
  createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url')

/** Verifies an Ed25519 signature with the public key `x`. Never throws. */
export function isSignedBy(x: string, { base, bytes }: { base: string; bytes: Buffer }): boolean {
  try {
    // Node decodes headers as Latin-1.
    return verify(null, Buffer.from(base, 'latin1'), keyOf(x), bytes)
  } catch {
    return false
  }
}

// Cached, because parsing a key takes as long as a verification.
const parsedKeys = createLru<string, KeyObject>(1000)

function keyOf(x: string): KeyObject {
  const key =
    parsedKeys.get(x) ?? createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  parsedKeys.set(x, key)
  return key
}
