import type { FastifyRequest, preParsingHookHandler } from 'fastify'
import { type ApiError, invalidField } from '../../infra/errors/errors.ts'
import { unsupportedContentType } from '../../infra/http/error-response.ts'
import { type BodyKind, headerNames } from '../../infra/wire/collect/constants.ts'
import type { IncomingBody } from './accept.ts'
import { checkPlatform } from './access.ts'
import type { CollectDeps } from './deps.ts'
import { type DocumentCache, type DocumentState, findDocument } from './documents.ts'

export const binaryType = 'application/octet-stream'

/** The path parameters of batches and results. */
export interface BodyParams {
  sessionId: string
  documentId: string
}

export type BodyRequest = FastifyRequest<{ Params: BodyParams }>

/** preParsing: 415 for any other content type, before a byte of the body is read. */
export const requireBinary: preParsingHookHandler = (request, _reply, _payload, done) => {
  const type = request.headers['content-type'] ?? ''
  const binary = type === binaryType || type.split(';', 1)[0]?.trim().toLowerCase() === binaryType
  done(binary ? null : unsupportedContentType(binaryType))
}

const clientKeyPattern = /^[A-Za-z0-9_-]{43}$/
const seqPattern = /^[+-]?[0-9]+$/

/** The document that a request addresses and the body it brings; throws what the caller is to be told. */
export function readBodyRequest(
  request: BodyRequest,
  { deps, cache, kind, now }: { deps: CollectDeps; cache: DocumentCache; kind: BodyKind; now: number },
): { state: DocumentState; incoming: IncomingBody } {
  const principal = deps.auth.publishable(request)
  const { organizationId, environment } = principal
  const clientPublicKey = header(request, headerNames.clientKey, clientKeyPattern)
  const claimedSeq = kind === 'batches' ? readSeq(request) : undefined
  const { sessionId, documentId } = request.params
  const scope = { organizationId, environment, sessionId, clientPublicKey }
  const state = findDocument(documentId, scope, { cache, keyring: deps.keyring, now })
  checkPlatform(principal, state.facts.platform)
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  return { state, incoming: { kind, body, claimedSeq } }
}

/** Any whole number: one that is not expected is out of sequence, not invalid. */
function readSeq(request: FastifyRequest): number {
  const seq = Number(header(request, headerNames.batchSeq, seqPattern))
  return Math.max(-Number.MAX_SAFE_INTEGER, Math.min(seq, Number.MAX_SAFE_INTEGER))
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
