import { isIPv4 } from 'node:net'
import type { FastifyRequest, preParsingHookHandler } from 'fastify'
import type { KeyAuth } from '../../infra/access/auth.ts'
import type { PublishablePrincipal } from '../../infra/access/principal.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { ApiError, invalidField } from '../../infra/errors/errors.ts'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import type { DataKeys } from '../../infra/event-store/data-keys.ts'
import type { EventMeta } from '../../infra/event-store/event.ts'
import { unsupportedContentType, unsupportedEncoding } from '../../infra/http/error-response.ts'
import { isUncompressed } from '../../infra/http/json-body.ts'
import type { Clock, Random } from '../../infra/ids.ts'
import { shortenedAddress } from '../../infra/ip/network.ts'
import type { EventLog } from '../../infra/log/port.ts'
import {
  type BodyKind,
  type ClientPlatform,
  headerNames,
} from '../../infra/wire/collect/protocol.ts'
import type { SignatureRules } from '../../infra/wire/web-bot-auth/check.ts'
import type { Admission } from './admission.ts'
import type { Claim, Claims } from './claims.ts'
import type { ServerDocument } from './documents.ts'
import type { Tenant } from './sealed-ids.ts'
import type { VolumeLimits } from './volume.ts'

export interface HandOffRequest extends Tenant {
  decisionId: string
  sessionId: string
}

export interface CollectDeps extends VolumeLimits {
  log: Pick<EventLog<Claim>, 'append' | 'appendIf'>
  codec: EventCodec
  auth: Pick<KeyAuth, 'requirePublishable' | 'refundWrongClient' | 'publishable'>
  keyring: Keyring
  clock: Clock
  random: Random
  /** Keys that encrypt the personal data in events, one per session. */
  dataKeys: Pick<DataKeys, 'get' | 'ensure' | 'newSession' | 'discard'>
  /** Make sequence numbers unique across processes, see claims.ts. */
  claims: Claims
  admission: Admission
  /** Rejects with 409 if there is no secret key that could open a token. */
  requireRecipients: (tenant: Tenant) => Promise<void>
  /** Waits for the decision and seals it; rejects with 503 on timeout. See hand-off.ts. */
  sealResult: (request: HandOffRequest) => Promise<string>
  /** Maximum time for a hand-off before 503, milliseconds (default 2000). */
  handOffTimeoutMs?: number
  batchIntervalMs?: number
  /** Counts documents by publishable key. */
  countDocument?: (keyId: string, step: 'opened' | 'used') => void
  /** Rules for Web Bot Auth signatures. */
  signatures: Pick<SignatureRules, 'baseUrls' | 'maxLifetimeMs'>
}

export const binaryType = 'application/octet-stream'

export interface BodyParams {
  sessionId: string
  documentId: string
}

export type BodyRequest = FastifyRequest<{ Params: BodyParams }>

/** preParsing hook. Throws 415 for another content type or a content encoding, before the body is read. */
export const requireBinary: preParsingHookHandler = (request, _reply, _payload, done) => {
  const type = request.headers['content-type'] ?? ''
  const isBinary = type === binaryType || type.split(';', 1)[0]?.trim().toLowerCase() === binaryType
  if (!isBinary) done(unsupportedContentType(binaryType))
  else done(isUncompressed(request) ? null : unsupportedEncoding())
}

const clientKeyPattern = /^[A-Za-z0-9_-]{43}$/
const seqPattern = /^[1-9][0-9]*$/

export function readBodyHeaders(request: BodyRequest, kind: BodyKind) {
  return {
    clientPublicKey: requireHeader(request, headerNames.clientKey, clientKeyPattern),
    seq: kind === 'batches' ? readSeq(request) : undefined,
  }
}

// Any positive integer is valid here; an unexpected one is refused later as out of sequence.
function readSeq(request: FastifyRequest): number {
  return Math.min(
    Number(requireHeader(request, headerNames.batchSeq, seqPattern)),
    Number.MAX_SAFE_INTEGER,
  )
}

function requireHeader(request: FastifyRequest, name: string, pattern: RegExp): string {
  const value = request.headers[name.toLowerCase()]
  if (value === undefined || value === '') throw invalidHeader(name, 'required')
  if (typeof value !== 'string' || !pattern.test(value)) throw invalidHeader(name, 'invalid')
  return value
}

function invalidHeader(name: string, issue: string): ApiError {
  return invalidField({ name, issue }, { header_name: name })
}

/**
 * Throws if the key's client target does not allow the platform; otherwise a page could report observations that only
 * an app can make. Throws 403 if another platform's SDK uses a native key (its units are refunded, see
 * refundWrongClient), and 422 if an app's SDK uses a browser key.
 */
export function checkPlatform(
  { clientTarget }: PublishablePrincipal,
  platform: ClientPlatform,
): void {
  const isBrowserKey = clientTarget === 'browser'
  if (clientTarget === `native_${platform}` || (isBrowserKey && platform === 'web')) return
  if (!isBrowserKey) throw new ApiError('auth.native_key_not_allowed')
  throw invalidField({
    name: 'sdk.platform',
    issue: 'not_allowed',
    expected: 'a browser key needs web',
  })
}

const maxHeaders = 100
const maxHeaderLength = 1024
const mappedPrefix = '::ffff:'

export function ipAddressOf(
  request: Pick<FastifyRequest, 'ip'>,
  { shortensAddresses }: Pick<PublishablePrincipal, 'shortensAddresses'>,
): string {
  return shortensAddresses ? shortenedAddress(request.ip) : unmappedAddressOf(request)
}

/** Returns the IPv4 address of an IPv4-mapped IPv6 address (`::ffff:203.0.113.9`), and any other unchanged. */
function unmappedAddressOf({ ip }: Pick<FastifyRequest, 'ip'>): string {
  if (!ip.toLowerCase().startsWith(mappedPrefix)) return ip
  const mapped = ip.slice(mappedPrefix.length)
  return isIPv4(mapped) ? mapped : ip
}

export function userAgentOf({ headers }: Pick<FastifyRequest, 'headers'>): string {
  return headers['user-agent']?.slice(0, maxHeaderLength) ?? ''
}

export function acceptLanguageOf({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  return headers['accept-language']?.slice(0, maxHeaderLength) ?? null
}

export function clientHintsOf({
  headers,
}: Pick<FastifyRequest, 'headers'>): Record<string, string> {
  const hints: Record<string, string> = {}
  for (const name in headers) {
    const value = name.startsWith('sec-ch-ua') ? headers[name] : undefined
    if (typeof value === 'string') hints[name] = value.slice(0, maxHeaderLength)
  }
  return hints
}

/** Returns header names in the order and case received, because both differ between HTTP stacks. */
export function headerOrderOf({ raw }: Pick<FastifyRequest, 'raw'>): string[] {
  return raw.rawHeaders.filter((_, index) => index % 2 === 0).slice(0, maxHeaders)
}

export function metaOf(
  { scope }: ServerDocument,
  { eventId, time }: { eventId: string; time: number },
): EventMeta {
  return { eventId, time, organizationId: scope.organizationId, environment: scope.environment }
}
