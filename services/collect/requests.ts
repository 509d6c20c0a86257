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
import { isPlain } from '../../infra/http/json-body.ts'
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
  auth: Pick<KeyAuth, 'requirePublishable' | 'refundOtherClient' | 'publishable'>
  keyring: Keyring
  clock: Clock
  random: Random
  /** Keys of sessions: the events of each session are encrypted under its own. */
  dataKeys: Pick<DataKeys, 'get' | 'ensure' | 'newSession' | 'giveUp'>
  /** Over all processes (claims.ts). */
  claims: Claims
  admission: Admission
  /** Rejects with 409 where no secret key could open a token. */
  checkRecipients: (tenant: Tenant) => Promise<void>
  /** Waits for the decision and seals it; rejects with 503 when it does not come in time. See hand-off.ts. */
  sealResult: (request: HandOffRequest) => Promise<string>
  /** From when a result is received until it is answered, with 503 if need be, milliseconds (default 2000). */
  handOffTimeoutMs?: number
  batchIntervalMs?: number
  /** Default: nobody counts. */
  countDocument?: (keyId: string, step: 'opened' | 'used') => void
  /** How signatures of requests are checked. */
  signatures: Pick<SignatureRules, 'baseUrls' | 'maxLifetimeMs'>
}

export const binaryType = 'application/octet-stream'

export interface BodyParams {
  sessionId: string
  documentId: string
}

export type BodyRequest = FastifyRequest<{ Params: BodyParams }>

/** preParsing: 415 for any other content type, or for an encoding, before a byte of the body is read. */
export const requireBinary: preParsingHookHandler = (request, _reply, _payload, done) => {
  const type = request.headers['content-type'] ?? ''
  const binary = type === binaryType || type.split(';', 1)[0]?.trim().toLowerCase() === binaryType
  if (!binary) done(unsupportedContentType(binaryType))
  else done(isPlain(request) ? null : unsupportedEncoding())
}

const clientKeyPattern = /^[A-Za-z0-9_-]{43}$/
const seqPattern = /^[1-9][0-9]*$/

export function readBodyHeaders(request: BodyRequest, kind: BodyKind) {
  return {
    clientPublicKey: header(request, headerNames.clientKey, clientKeyPattern),
    seq: kind === 'batches' ? readSeq(request) : undefined,
  }
}

// Any positive whole number is valid. One that is not the expected number is out of sequence instead.
function readSeq(request: FastifyRequest): number {
  return Math.min(
    Number(header(request, headerNames.batchSeq, seqPattern)),
    Number.MAX_SAFE_INTEGER,
  )
}

function header(request: FastifyRequest, name: string, pattern: RegExp): string {
  const value = request.headers[name.toLowerCase()]
  if (value === undefined || value === '') throw invalidHeader(name, 'required')
  if (typeof value !== 'string' || !pattern.test(value)) throw invalidHeader(name, 'invalid')
  return value
}

function invalidHeader(name: string, issue: string): ApiError {
  return invalidField({ name, issue }, { header_name: name })
}

/**
 * A key's client target binds the platform, since a page could otherwise report what only an app can see. Throws 403
 * when a native key is used by another platform's SDK, which costs no units (see refundOtherClient), and 422 when a
 * browser key is used by an app's.
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
  return shortensAddresses ? shortenedAddress(request.ip) : wholeAddressOf(request)
}

/** IPv4 where an IPv6 socket only carries it (`::ffff:203.0.113.9`). */
function wholeAddressOf({ ip }: Pick<FastifyRequest, 'ip'>): string {
  if (!ip.toLowerCase().startsWith(mappedPrefix)) return ip
  const carried = ip.slice(mappedPrefix.length)
  return isIPv4(carried) ? carried : ip
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

/** Header names in the order and case received, because both differ between HTTP stacks. */
export function headerOrderOf({ raw }: Pick<FastifyRequest, 'raw'>): string[] {
  return raw.rawHeaders.filter((_, index) => index % 2 === 0).slice(0, maxHeaders)
}

export function metaOf(
  { scope }: ServerDocument,
  { eventId, time }: { eventId: string; time: number },
): EventMeta {
  return { eventId, time, organizationId: scope.organizationId, environment: scope.environment }
}
