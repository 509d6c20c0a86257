import { z } from 'zod'
import {
  type DeliveryEnvelope,
  deliveryEnvelopeSchema,
  isUsablePublicKey,
} from '../../../infra/wire/delivery-envelope.ts'
import type { DirectResponse } from '../../../infra/wire/webhooks/direct-call.ts'

/** What a service's response is worth. Problems are read by its owner and by whoever signs up, and quote nothing. */
export type Answered =
  | { kind: 'accepted'; envelope: DeliveryEnvelope }
  /** `retry`: it may be better the next time; `refuse`: the service does not want the account. */
  | { kind: 'retry' | 'refuse'; problem: string }

const answerSchema = z.object({ encrypted_delivery: deliveryEnvelopeSchema })
/** Of the 4xx those that say "not now": time-out, conflict with a request under way, too early, too many. */
const laterStatuses = [408, 409, 425, 429]

/** Accepted with 2xx and an envelope for this delivery key (`keyId`), of which only the key's holder can tell more. */
export function judgeAnswer({ status, body }: DirectResponse, keyId: string): Answered {
  if (status >= 200 && status < 300) return readEnvelope(body, keyId)
  const problem = `The service answered with status ${status}.`
  const isFinal = status >= 300 && status < 500 && !laterStatuses.includes(status)
  return { kind: isFinal ? 'refuse' : 'retry', problem }
}

function readEnvelope(body: Buffer, keyId: string): Answered {
  const json = parsed(body)
  if (json === undefined) return improper('is not JSON')
  const answer = answerSchema.safeParse(json)
  if (!answer.success) return improper(`has no proper ${placeOf(answer.error)}`)
  const { encrypted_delivery: envelope } = answer.data
  if (envelope.key_id !== keyId) return improper('is sealed to another key than the one in the request')
  if (!isUsablePublicKey(envelope.ephemeral_public_key)) {
    return improper('has an ephemeral_public_key that nothing can be sealed with')
  }
  return { kind: 'accepted', envelope }
}

const improper = (what: string): Answered => ({ kind: 'retry', problem: `The service's answer ${what}.` })

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

/** The names are ours: members that we do not know are not named. */
function placeOf({ issues }: z.ZodError): string {
  return issues[0]?.path.join('.') || 'encrypted_delivery'
}
