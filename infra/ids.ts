import { createHash, hash } from 'node:crypto'

export const base32Alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** Cryptographically random bytes, passed in so that tests can repeat them. */
export type Random = (size: number) => Buffer
/** Epoch milliseconds, passed in so that tests can move it. */
export type Clock = () => number

export type Id<P extends string> = `${P}_${string}`
export type SessionId = Id<'sid'>
export type DecisionId = Id<'evt'>
export type OrganizationId = Id<'org'>
export type KeyId = Id<'key'>
export type EndpointId = Id<'we'>
/** A signup or login. Whoever knows the id may see its consent page, so all of it is random. */
export type GateSessionId = Id<'gate'>
export type GateAccountId = Id<'gacct'>
export type ConsoleSessionId = Id<'csn'>

/** Each byte gives a character, of its last five bits. */
export function base32Characters(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => base32Alphabet[byte & 31]).join('')
}

/** 16 bytes as 26 characters of lower-case Crockford base32 (no i, l, o, u), most significant bit first. */
export function base32(bytes: Uint8Array): string {
  let text = ''
  let pending = 0
  // 26 characters hold 130 bits: the first has two zero bits in front.
  let bits = 2
  for (let i = 0; i < 16; i++) {
    pending = (pending << 8) | (bytes[i] ?? 0)
    for (bits += 8; bits >= 5; bits -= 5) text += base32Alphabet[(pending >>> (bits - 5)) & 31]
    pending &= (1 << bits) - 1
  }
  return text
}

/** The first 48 bits are the time, so that ids made later sort later. Not for secrets. */
export function timeOrderedId<P extends string>(prefix: P, now: number, random: Random): Id<P> {
  const bytes = Buffer.concat([Buffer.alloc(6), random(10)])
  bytes.writeUIntBE(now, 0, 6)
  return `${prefix}_${base32(bytes)}`
}

export function randomId<P extends string>(prefix: P, random: Random): Id<P> {
  return `${prefix}_${base32(random(16))}`
}

/** The id that follows from `parts`: a retry of the same step makes the same id. */
export function derivedId<P extends string>(prefix: P, ...parts: string[]): Id<P> {
  // By way of text: Node takes three times as long to hand the digest out as a buffer.
  const digest = hash('sha256', parts.join('\0'), 'binary')
  return `${prefix}_${base32(Buffer.from(digest, 'latin1'))}`
}

/** Whether an id, in lower case, may have the text somewhere: of its prefix, of the characters behind it, or of both. */
export function isPartOfId(text: string): boolean {
  return /^(?:[a-z]*_)?[0-9a-hjkmnp-tv-z]*$|^[a-z]{1,5}$/.test(text)
}

export function hexId<P extends string>(prefix: P, random: Random): Id<P> {
  return `${prefix}_${random(16).toString('hex')}`
}

/** 32 hex digits that follow from `parts`: a retry of the same step makes the same id. */
export function derivedHexId<P extends string>(prefix: P, ...parts: string[]): Id<P> {
  return `${prefix}_${hash('sha256', parts.join('\0')).slice(0, 32)}`
}

export function requestId(random: Random): string {
  return hexId('req', random)
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
}

export function isId<P extends keyof typeof patterns>(prefix: P, text: string): text is Id<P> {
  return patterns[prefix].test(text)
}

/** As JSON Schema has it. */
export function idPattern(prefix: keyof typeof patterns): string {
  return patterns[prefix].source
}

export function asId<P extends keyof typeof patterns>(prefix: P, text: string): Id<P> {
  if (isId(prefix, text)) return text
  throw new Error(`not a ${prefix} id: ${text}`)
}

/** A session or event id of the earlier form: 32 hexadecimal digits; accepted as input only. */
export function isLegacyId(text: string): boolean {
  return new RegExp(legacyIdPattern).test(text)
}

export const legacyIdPattern = '^[0-9a-fA-F]{32}$'

/** A checksum at the end of a key or token shows typos. `length` characters of base32. */
export function checksum(stem: string, length: number): string {
  return base32Characters(createHash('sha256').update(stem).digest().subarray(0, length))
}

export function webhookEventId(type: string, subjectId: string): DecisionId {
  return derivedId('evt', 'webhook-event', type, subjectId)
}
