import type { z } from 'zod'
import { type FieldIssue, invalidField } from '../../../infra/errors/errors.ts'
import { characterCount, isOneLine, isVisible } from '../../../infra/text.ts'
import {
  type DeliveryRequest,
  deliveryKeyId,
  isUsablePublicKey,
} from '../../../infra/wire/delivery-envelope.ts'
import type { Requester } from '../requests/requester.ts'
import type { SessionSpec } from './open-session.ts'
import type { createSessionBody } from './schemas.ts'

/** Of what comes with a signup; the name in characters (code points), metadata as the UTF-8 of its JSON. */
export const bounds = {
  accountName: 100,
  metadataKeys: 5,
  metadataBytes: 4096,
  metadataDepth: 8,
} as const

export const parameterSet = 'gate_session_create'

export type SessionRequest = Omit<z.output<typeof createSessionBody>, 'service_id'> & { requester: Requester }

/** The request as it is decided about. 422 naming the field that does not fit. */
export function checkedRequest(request: SessionRequest): SessionSpec {
  const { key_id, public_key } = checkedDelivery(request.delivery)
  return {
    account_name: checkedAccountName(request.account_name),
    metadata: checkedMetadata(request.metadata),
    delivery_key_id: key_id,
    delivery_public_key: public_key,
    ...request.requester,
  }
}

function refused(field: Omit<FieldIssue, 'received'>) {
  return invalidField(field, { parameter_set: parameterSet }, 'gate.validation_failed')
}

function checkedAccountName(name: string): string {
  const trimmed = name.trim()
  const fits = characterCount(trimmed) <= bounds.accountName && isOneLine(trimmed) && isVisible(trimmed)
  if (fits) return trimmed
  const expected = `1-${bounds.accountName} characters in one line, no control or direction characters`
  throw refused({ name: 'account_name', issue: 'invalid', expected })
}

function checkedMetadata(metadata: Record<string, unknown> | undefined): string | null {
  if (metadata === undefined) return null
  const tooLarge = (expected: string) => refused({ name: 'metadata', issue: 'too_large', expected })
  if (Object.keys(metadata).length > bounds.metadataKeys) {
    throw tooLarge(`at most ${bounds.metadataKeys} members`)
  }
  if (!isStorable(metadata, bounds.metadataDepth)) {
    const expected = `JSON nested at most ${bounds.metadataDepth} deep, with numbers of double precision`
    throw refused({ name: 'metadata', issue: 'invalid', expected })
  }
  const text = JSON.stringify(metadata)
  if (Buffer.byteLength(text) <= bounds.metadataBytes) return text
  throw tooLarge(`at most ${bounds.metadataBytes} bytes of JSON`)
}

/** Whether the value stays what it is as JSON: a number such as 1e400 would not. Not deeper than `depth` levels. */
function isStorable(value: unknown, depth: number): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  return depth > 0 && Object.values(value).every((member) => isStorable(member, depth - 1))
}

function checkedDelivery(delivery: DeliveryRequest): DeliveryRequest {
  if (!isUsablePublicKey(delivery.public_key)) {
    throw refused({ name: 'delivery.public_key', issue: 'invalid', expected: 'a raw X25519 public key' })
  }
  const expected = 'base64url of the SHA-256 of the raw public key'
  const keyId = deliveryKeyId(Buffer.from(delivery.public_key, 'base64url'))
  if (delivery.key_id !== keyId) throw refused({ name: 'delivery.key_id', issue: 'mismatch', expected })
  return delivery
}
