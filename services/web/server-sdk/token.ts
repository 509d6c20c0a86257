import { base64Bytes } from './base64.ts'
import type { VerifiedSession } from './session.ts'

/** The token is not sealed to this key, or was modified. */
export class TokenError extends Error {
  override name = 'TokenError'
}

export interface VerifyOptions {
  /** Secret key of the same organization and environment as the page's publishable key. */
  secretKey: string | undefined
  /** Seconds for which a token is valid; also the tolerance for a clock that is behind. Default: 300. */
  maxAge?: number
  /** The text that the page passed to `getSession({ binding })`, such as the form's one-time token. */
  binding?: string | undefined
  /**
   * Makes a token single-use: atomically adds the id, for `ttl` seconds, to a store that all your processes share, and
   * returns true if the id was already there. With Redis: `(await redis.set(id, 1, { NX: true, EX: ttl })) === null`.
   */
  seen?: (id: string, ttl: number) => boolean | Promise<boolean>
  /** Current time in epoch milliseconds. Default: `Date.now()`. */
  now?: number
}

/** Result of `verifyToken`. `unreadable`: forged, damaged, or sealed to other keys. `message` is for your log only. */
export type Verification =
  | { ok: true; session: VerifiedSession }
  | {
      ok: false
      reason: 'missing' | 'unreadable' | 'expired' | 'wrong_binding' | 'already_used'
      message: string
    }

const defaultMaxAge = 300

/**
 * Opens a sealed token and verifies that it is recent and belongs to this request. `token` may be anything. Rejects
 * only if the secret key is missing, or if `seen` rejects.
 */
export async function verifyToken(token: unknown, options: VerifyOptions): Promise<Verification> {
  const { secretKey, maxAge = defaultMaxAge, binding, seen, now = Date.now() } = options
  if (token === undefined || token === null || token === '')
    return refusal(
      'missing',
      'there is no token: the page could not reach Tidegate, or left it out',
    )

  // 1. Open it.
  const session = await openToken(token, secretKey).catch((error: unknown) => {
    if (error instanceof TokenError) return error
    throw error
  })
  if (session instanceof TokenError) return refusal('unreadable', session.message)

  // 2. It must be recent.
  const { event_id, evaluated_at } = session.decision
  const age = (now - Date.parse(evaluated_at)) / 1000
  if (!(Math.abs(age) <= maxAge))
    return refusal('expired', `the token is ${Math.round(age)} s old, and may be ${maxAge} s old`)

  // 3. It must belong to this request.
  // An undefined or empty binding matches no token: the caller has lost it, for example with an expired session.
  const isBound = 'binding' in options
  if (isBound && (!binding || session.hand_off?.binding !== (await sha256Hex(binding))))
    return refusal('wrong_binding', 'the token was made with another binding, or without one')

  // 4. It must be unused. Checked last, so that a refused token is not used up.
  if (await seen?.(event_id, Math.ceil(2 * maxAge)))
    return refusal('already_used', `the token ${event_id} was used before`)
  return { ok: true, session }
}

const refusal = (
  reason: Extract<Verification, { ok: false }>['reason'],
  message: string,
): Verification => ({ ok: false, reason, message })

const nonceBytes = 12
const tagBytes = 16
const idBytes = 32
const headerBytes = 19
const recipientBytes = 92
const maxPayloadBytes = 4 * 1024 * 1024
const label = 'foil-sealed-results-v2\0'

type Bytes = Uint8Array<ArrayBuffer>

/**
 * Returns the token's payload. Does not verify age, binding or single use. Rejects with `TokenError`. The layout is in
 * guide/server.md.
 */
export async function openToken(
  token: unknown,
  secretKey: string | undefined,
): Promise<VerifiedSession> {
  if (typeof secretKey !== 'string' || secretKey === '')
    throw new TypeError('openToken needs a secret key (sk_live_… or sk_test_…)')
  if (typeof token !== 'string') throw new TokenError('the token is not a string')
  const bytes = base64Bytes(token)
  if (!bytes) throw new TokenError('the token is not base64')
  const hash = await sha256Hex(secretKey)
  const key = await sha256(`${hash}\0sealed-results`)
  try {
    const compressed =
      bytes[0] === 1
        ? await decrypt(bytes.subarray(1 + nonceBytes), key, part(bytes, 1, nonceBytes))
        : await openRecipient(bytes, { hash, key })
    const session = JSON.parse(new TextDecoder().decode(await inflate(compressed)))
    // A payload without these members can only come from a holder of the key.
    const { event_id, evaluated_at } = session.decision
    if (typeof event_id !== 'string' || Number.isNaN(Date.parse(evaluated_at)))
      throw new TokenError('the token has no decision')
    return session
  } catch (cause) {
    if (cause instanceof TokenError) throw cause
    throw new TokenError('the token was modified, or is not a sealed token', { cause })
  }
}

// Version 2: a random content key encrypts the payload, and each recipient's key wraps the content key.
async function openRecipient(bytes: Bytes, { hash, key }: { hash: string; key: Bytes }) {
  const view = new DataView(bytes.buffer)
  if (bytes[0] !== 2 || bytes.length < headerBytes)
    throw new TokenError('this is not a sealed token')
  const count = view.getUint16(1)
  const end = headerBytes + view.getUint32(15) + tagBytes
  if (count < 1 || bytes.length !== end + count * recipientBytes)
    throw new TokenError('the token has the wrong length')

  const ids = Array.from({ length: count }, (_, i) =>
    part(bytes, end + i * recipientBytes, idBytes),
  )
  const recipientId = await sha256(`${hash}\0sealed-results-recipient-id`)
  const index = ids.findIndex((id) => id.every((byte, i) => byte === recipientId[i]))
  if (index < 0)
    throw new TokenError('the token is sealed to the keys of another organization or environment')

  const at = end + index * recipientBytes + idBytes
  const contentKey = await decrypt(
    part(bytes, at + nonceBytes, recipientBytes - idBytes - nonceBytes),
    key,
    part(bytes, at, nonceBytes),
    concat([utf8(`${label}recipient\0`), recipientId]),
  )
  return decrypt(
    part(bytes, headerBytes, end - headerBytes),
    contentKey,
    part(bytes, 3, nonceBytes),
    concat([utf8(`${label}payload\0`), part(bytes, 0, headerBytes), ...ids]),
  )
}

const part = (bytes: Bytes, start: number, length: number) => bytes.subarray(start, start + length)

const utf8 = (text: string): Bytes => new TextEncoder().encode(text)

async function decrypt(
  sealed: Bytes,
  key: Bytes,
  iv: Bytes,
  additionalData?: Bytes,
): Promise<Bytes> {
  const aes = await crypto.subtle.importKey('raw', key, 'AES-GCM', false, ['decrypt'])
  const algorithm = { name: 'AES-GCM', iv, ...(additionalData && { additionalData }) }
  return new Uint8Array(await crypto.subtle.decrypt(algorithm, aes, sealed))
}

async function sha256(text: string): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', utf8(text)))
}

async function sha256Hex(text: string): Promise<string> {
  return Array.from(await sha256(text), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

// Limited to maxPayloadBytes, so that a small token can't exhaust memory.
async function inflate(compressed: Bytes): Promise<Bytes> {
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream('deflate'))
  const reader = stream.getReader()
  const chunks: Bytes[] = []
  let length = 0
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    length += read.value.length
    if (length > maxPayloadBytes) {
      await reader.cancel()
      throw new TokenError('the token contains more than 4 MiB')
    }
    chunks.push(read.value)
  }
  return concat(chunks)
}

function concat(chunks: Bytes[]): Bytes {
  const bytes = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}
