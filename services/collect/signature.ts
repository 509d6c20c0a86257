import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import {
  type AgentSignature,
  checkSignature,
  type SignatureRules,
} from '../../infra/wire/web-bot-auth/check.ts'
import { signatureAgentHost } from '../../infra/wire/web-bot-auth/fields.ts'
import type { DocumentSignature } from '../../schemas/events.ts'

/**
 * Checks the request's Web Bot Auth signature as far as possible without the key. Returns null if the request has no
 * signature headers.
 */
export function documentSignature(
  { raw, body }: Pick<FastifyRequest, 'raw' | 'body'>,
  rules: SignatureRules,
): DocumentSignature | null {
  const check = checkSignature(signedPartsOf(raw), rules)
  if (!check) return null
  const { status } = check
  const reason = 'reason' in check ? check.reason : null
  return {
    status,
    reason,
    signed: status === 'signed' ? signedRequest(check.signature, body) : null,
  }
}

const signedPartsOf = ({ method = '', url: target = '', rawHeaders }: FastifyRequest['raw']) => ({
  method,
  target,
  rawHeaders,
})

/** Returns the host of the agent that signed, or else the first host in the Signature-Agent header. */
export function agentHostOf(
  { raw }: Pick<FastifyRequest, 'raw'>,
  signature: DocumentSignature | null,
): string | null {
  // Nearly every page has no signature headers, so skip parsing them.
  if (!signature) return null
  return signature.signed
    ? new URL(signature.signed.directory).host
    : signatureAgentHost(signedPartsOf(raw))
}

function signedRequest(
  { directory, keyId: key_id, bases, bytes, nonceHash: nonce_hash }: AgentSignature,
  body: unknown,
): DocumentSignature['signed'] {
  const request_hash = createHash('sha256').update(JSON.stringify(body)).digest('hex')
  return { directory, key_id, bases, bytes: bytes.toString('base64'), nonce_hash, request_hash }
}
