import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { isObject } from '../../../schemas/lenient.ts'
import { createLru } from '../../lru.ts'
import { parsedJson } from '../../text.ts'

/** Ed25519 public keys by their thumbprints (RFC 7638, RFC 8037), base64url of 32 bytes. */
export type DirectoryKeys = Record<string, DirectoryKey>

export interface DirectoryKey {
  /** The key, base64url of 32 bytes. */
  x: string
  /** Epoch milliseconds between which it may be used; null = without a limit. */
  starts_at: number | null
  ends_at: number | null
}

// More than any agent rotates through.
const mostKeys = 100
const pointPattern = /^[A-Za-z0-9_-]{43}$/

/**
 * The Ed25519 keys of a directory (`{"keys":[...]}`, draft-meunier-http-message-signatures-directory), the first hundred.
 * Others are left out: RSA, and those that are not for signatures (RFC 7517, `use` and `key_ops`). Undefined where the
 * body is no directory.
 */
export function directoryKeys(body: string): DirectoryKeys | undefined {
  const directory = parsedJson(body)
  const keys = isObject(directory) ? directory.keys : undefined
  if (!Array.isArray(keys)) return undefined
  const read = keys.flatMap((key) => keyOfJwk(key) ?? [])
  return Object.fromEntries(read.slice(0, mostKeys).map((key) => [thumbprint(key.x), key]))
}

function keyOfJwk(jwk: unknown): DirectoryKey | undefined {
  if (!isObject(jwk) || jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519' || !isForSignatures(jwk))
    return undefined
  if (typeof jwk.x !== 'string' || !pointPattern.test(jwk.x)) return undefined
  const [starts_at, ends_at] = [jwk.nbf, jwk.exp].map(momentOf)
  // A restriction that cannot be read must not be ignored.
  if (starts_at === undefined || ends_at === undefined) return undefined
  return { x: jwk.x, starts_at, ends_at }
}

const isForSignatures = ({ use = 'sig', key_ops = ['verify'] }: Record<string, unknown>): boolean =>
  use === 'sig' && Array.isArray(key_ops) && key_ops.includes('verify')

// Seconds since 1970 as in a JWT, which some agents publish as milliseconds. null = no limit, undefined = unreadable.
function momentOf(value: unknown): number | null | undefined {
  if (value === undefined || value === null) return null
  if (typeof value !== 'number') return undefined
  return value > 1e11 ? value : value * 1000
}

/** Compares `nbf` and `exp` with a time in epoch milliseconds. */
export const isInForce = ({ starts_at, ends_at }: DirectoryKey, at: number): boolean =>
  (starts_at === null || starts_at <= at) && (ends_at === null || at < ends_at)

const thumbprint = (x: string): string =>
  createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url')

/** `x`: the public key. Never throws. */
export function isSignedBy(x: string, { base, bytes }: { base: string; bytes: Buffer }): boolean {
  try {
    // Node gives headers as Latin-1.
    return verify(null, Buffer.from(base, 'latin1'), keyOf(x), bytes)
  } catch {
    return false
  }
}

// To read a key takes as long as to verify by it.
const read = createLru<string, KeyObject>(1000)

function keyOf(x: string): KeyObject {
  const key =
    read.get(x) ?? createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  read.set(x, key)
  return key
}
