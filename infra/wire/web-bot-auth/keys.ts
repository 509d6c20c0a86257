import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { isObject } from '../../../schemas/lenient.ts'
import { createLru } from '../../lru.ts'
import { parsedJson } from '../../text.ts'

/** An Ed25519 public key by its thumbprint (RFC 7638, RFC 8037): base64url of 32 bytes each. */
export type DirectoryKeys = Map<string, string>

// More than any agent rotates through.
const mostKeys = 100
const pointPattern = /^[A-Za-z0-9_-]{43}$/

/**
 * The Ed25519 keys of a directory (`{"keys":[...]}`, draft-meunier-http-message-signatures-directory), the first hundred.
 * Others are left out, RSA among them. Undefined where the body is no directory.
 */
export function directoryKeys(body: string): DirectoryKeys | undefined {
  const directory = parsedJson(body)
  const keys = isObject(directory) ? directory.keys : undefined
  if (!Array.isArray(keys)) return undefined
  const points = keys.flatMap((key) => pointOf(key) ?? [])
  return new Map(points.slice(0, mostKeys).map((x) => [thumbprint(x), x]))
}

function pointOf(jwk: unknown): string | undefined {
  if (!isObject(jwk) || jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519') return undefined
  return typeof jwk.x === 'string' && pointPattern.test(jwk.x) ? jwk.x : undefined
}

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
  const key = read.get(x) ?? createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  read.set(x, key)
  return key
}
