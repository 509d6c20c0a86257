import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import {
  checkSignature,
  type RequestSignature,
  type SignatureRules,
} from '../../infra/wire/web-bot-auth/check.ts'
import { namedAgentHost } from '../../infra/wire/web-bot-auth/fields.ts'
import type { DocumentSignature } from '../../schemas/events.ts'

/** What can be told of the request's signature without its key; null without any header of Web Bot Auth. */
export function documentSignature(
  { raw, body }: Pick<FastifyRequest, 'raw' | 'body'>,
  rules: SignatureRules,
): DocumentSignature | null {
  const checked = checkSignature(receivedOf(raw), rules)
  if (!checked) return null
  const { status } = checked
  const reason = 'reason' in checked ? checked.reason : null
  return {
    status,
    reason,
    signed: status === 'signed' ? signedRequest(checked.signature, body) : null,
  }
}

const receivedOf = ({ method = '', url: target = '', rawHeaders }: FastifyRequest['raw']) => ({
  method,
  target,
  rawHeaders,
})

/** The agent that signed, else the first one that the Signature-Agent header names. */
export function agentHostOf(
  { raw }: Pick<FastifyRequest, 'raw'>,
  signature: DocumentSignature | null,
): string | null {
  // It is null where none of the headers is there, as of nearly every page: they are not looked for again.
  if (!signature) return null
  return signature.signed
    ? new URL(signature.signed.directory).host
    : namedAgentHost(receivedOf(raw))
}

function signedRequest(
  { directory, keyId: key_id, bases, bytes, nonceHash: nonce_hash }: RequestSignature,
  body: unknown,
): DocumentSignature['signed'] {
  const request_hash = createHash('sha256').update(JSON.stringify(body)).digest('hex')
  return { directory, key_id, bases, bytes: bytes.toString('base64'), nonce_hash, request_hash }
}
