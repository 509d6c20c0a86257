import { createHash, hash } from 'node:crypto'

export const base32Alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** Returns random bytes. Injected, so that tests are reproducible. */
export type Random = (size: number) => Buffer
/** Returns epoch milliseconds. Injected, so that tests can control the time. */
export type Clock = () => number

export type Id<P extends string> = `${P}_${string}`
export type SessionId = Id<'sid'>
export type DecisionId = Id<'evt'>
export type OrganizationId = Id<'org'>
export type KeyId = Id<'key'>
export type EndpointId = Id<'we'>
/** Id of a Gate signup or login. Fully random, because the id grants access to the consent page. */
export type GateSessionId = Id<'gate'>
export type GateAccountId = Id<'gacct'>
export type ConsoleSessionId = Id<'csn'>

/** Returns one base32 character per byte, from its last five bits. */
export function base32Characters(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => base32Alphabet[byte & 31]).join('')
}

/** Encodes 16 bytes as 26 characters of lower-case Crockford base32 (no i, l, o, u), most significant bit first. */
export function base32(bytes: Uint8Array): string {
  let text = ''
  let pending = 0
  // 26 characters hold 130 bits, so the first one starts with two zero bits.
  let bits = 2
  for (let i = 0; i < 16; i++) {
    pending = (pending << 8) | (bytes[i] ?? 0)
    for (bits += 8; bits >= 5; bits -= 5) text += base32Alphabet[(pending >>> (bits - 5)) & 31]
    pending &= (1 << bits) - 1
  }
  return text
}

/** Returns an id whose first 48 bits are the time, so that ids sort by creation. Not for secrets. */
export function timeOrderedId<P extends string>(prefix: P, now: number, random: Random): Id<P> {
  const bytes = Buffer.concat([Buffer.alloc(6), random(10)])
  bytes.writeUIntBE(now, 0, 6)
  return `${prefix}_${base32(bytes)}`
}

/** Returns the time of an id from `timeOrderedId`, in epoch milliseconds. */
export function timeOfId(id: string): number {
  // Ten characters have 50 bits; the first two are zero.
  const time = id.slice(id.indexOf('_') + 1).slice(0, 10)
  return [...time].reduce((sum, character) => sum * 32 + base32Alphabet.indexOf(character), 0)
}

export function randomId<P extends string>(prefix: P, random: Random): Id<P> {
  return `${prefix}_${base32(random(16))}`
}

/** Returns an id derived from `parts`, so that a retry of the same step creates the same id. */
export function derivedId<P extends string>(prefix: P, ...parts: string[]): Id<P> {
  // 'binary', because Node takes three times as long to return the digest as a buffer.
  const digest = hash('sha256', parts.join('\0'), 'binary')
  return `${prefix}_${base32(Buffer.from(digest, 'latin1'))}`
}

/** Returns true if a lower-case text can be part of an id, including its prefix. */
export function isPartOfId(text: string): boolean {
  return /^(?:[a-z]*_)?[0-9a-hjkmnp-tv-z]*$|^[a-z]{1,5}$/.test(text)
}

export function randomHexId<P extends string>(prefix: P, random: Random): Id<P> {
  return `${prefix}_${random(16).toString('hex')}`
}

/** Returns an id of 32 hex digits derived from `parts`, so that a retry of the same step creates the same id. */
export function derivedHexId<P extends string>(prefix: P, ...parts: string[]): Id<P> {
  return `${prefix}_${hash('sha256', parts.join('\0')).slice(0, 32)}`
}

export function newRequestId(random: Random): string {
  return randomHexId('req', random)
}

const patterns = {
  sid: /^sid_[0-9a-hjkmnp-tv-z]{26}$/,
  evt: /^evt_[0-9a-hjkmnp-tv-z]{26}$/,
  vid: /^vid_[0-9a-hjkmnp-tv-z]{26}$/,
  org: /^org_[0-9a-hjkmnp-tv-z]{26}$/,
  key: /^key_[0-9a-hjkmnp-tv-z]{26}$/,
  we: /^we_[0-9a-f]{32}$/,
  wdlv: /^wdlv_[0-9a-f]{32}$/,
  gate: /^gate_[0-9a-hjkmnp-tv-z]{26}$/,
  gacct: /^gacct_[0-9a-hjkmnp-tv-z]{26}$/,
  csn: /^csn_[0-9a-hjkmnp-tv-z]{26}$/,
  mrk: /^mrk_[0-9a-hjkmnp-tv-z]{26}$/,
  view: /^view_[0-9a-hjkmnp-tv-z]{26}$/,
  alert: /^alert_[0-9a-hjkmnp-tv-z]{26}$/,
}

export function isId<P extends keyof typeof patterns>(prefix: P, text: string): text is Id<P> {
  return patterns[prefix].test(text)
}

/** Returns the id's pattern for JSON Schema. */
export function idPattern(prefix: keyof typeof patterns): string {
  return patterns[prefix].source
}

/** Returns the text as a typed id. Throws if it is malformed. */
export function asId<P extends keyof typeof patterns>(prefix: P, text: string): Id<P> {
  if (isId(prefix, text)) return text
  throw new Error(`not a ${prefix} id: ${text}`)
}

/** Returns true for a session or event id in the former format (32 hex digits), which is accepted as input only. */
export function isLegacyId(text: string): boolean {
  return new RegExp(legacyIdPattern).test(text)
}

export const legacyIdPattern = '^[0-9a-fA-F]{32}$'

/** Returns a checksum of `length` base32 characters, which detects typos in keys and tokens. */
export function checksum(stem: string, length: number): string {
  return base32Characters(createHash('sha256').update(stem).digest().subarray(0, length))
}

export function webhookEventId(type: string, subjectId: string): DecisionId {
  return derivedId('evt', 'webhook-event', type, subjectId)
}
