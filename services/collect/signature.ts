import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import {
  checkSignature,
  type RequestSignature,
  type SignatureRules,
} from '../../infra/wire/web-bot-auth/check.ts'
import type { DocumentSignature } from '../../schemas/events.ts'

/** What can be told of the request's signature without its key; null without any header of Web Bot Auth. */
export function documentSignature(
  { raw, body }: Pick<FastifyRequest, 'raw' | 'body'>,
  rules: SignatureRules,
): DocumentSignature | null {
  const { method = '', url: target = '', rawHeaders } = raw
  const checked = checkSignature({ method, target, rawHeaders }, rules)
  if (!checked) return null
  const { status } = checked
  const reason = 'reason' in checked ? checked.reason : null
  return { status, reason, signed: status === 'signed' ? signedRequest(checked.signature, body) : null }
}

/** The host of the agent that signed. The header may name others, too. */
export function signedAgentOf(signature: DocumentSignature | null): string | null {
  return signature?.signed ? new URL(signature.signed.directory).hostname : null
}

function signedRequest(
  { directory, keyId: key_id, bases, bytes, nonceHash: nonce_hash }: RequestSignature,
  body: unknown,
): DocumentSignature['signed'] {
  const request_hash = createHash('sha256').update(JSON.stringify(body)).digest('hex')
  return { directory, key_id, bases, bytes: bytes.toString('base64'), nonce_hash, request_hash }
}
