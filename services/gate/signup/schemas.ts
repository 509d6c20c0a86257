import { z } from 'zod'
import { checkAll, checkPresent } from '../../../infra/errors/check-all.ts'
import { type FieldIssue, invalidField } from '../../../infra/errors/errors.ts'
import { timestamp } from '../../../infra/http/schemas.ts'
import { characterCount, isOneLine, isVisible } from '../../../infra/text.ts'
import {
  type DeliveryRequest,
  deliveryKeyId,
  deliveryRequestSchema,
  isUsablePublicKey,
} from '../../../infra/wire/delivery-envelope.ts'
import { confirmationCodeSchema } from '../../../infra/wire/gate.ts'
import { registryEntrySchema, serviceIdSchema } from '../registry/schemas.ts'
import { createParameterSet } from '../sessions.ts'
import { bundleSchema } from '../vault.ts'

// `accountName` is in characters (code points), `metadataBytes` in UTF-8 bytes of the JSON.
const signupBounds = {
  accountName: 100,
  metadataKeys: 5,
  metadataBytes: 4096,
  metadataDepth: 8,
} as const

const gateSessionId = z.string().regex(/^gate_[0-9a-hjkmnp-tv-z]{26}$/)

export const createSessionBody = z
  .strictObject({
    service_id: serviceIdSchema,
    account_name: z
      .string()
      .describe(
        `Account name to show to the person, 1 to ${signupBounds.accountName} characters on one line. Outer spaces are removed.`,
      ),
    metadata: z
      .record(z.string(), z.unknown())
      .meta({ maxProperties: signupBounds.metadataKeys })
      .optional()
      .describe(
        `Data for the service, passed on unchanged: at most ${signupBounds.metadataKeys} members and ${signupBounds.metadataBytes} bytes of JSON, nested at most ${signupBounds.metadataDepth} levels.`,
      ),
    delivery: deliveryRequestSchema,
    claim: z
      .literal('supported')
      .optional()
      .describe(
        'Set if the agent can send the code that the consent page shows after the approval. The signup then waits for `POST .../claim` if the approving browser is in another or unknown network or not `human`, or if the service requires it.',
      ),
  })
  .meta({ id: 'CreateGateSessionRequest' })

export const createdSessionSchema = z
  .strictObject({
    object: z.literal('gate_session'),
    id: gateSessionId,
    status: z.enum(['pending']),
    poll_token: z
      .string()
      .describe('Token to poll, claim and acknowledge this session. Not shown again.'),
    consent_url: z.url().describe('Page where a person approves the signup.'),
    confirmation_code: confirmationCodeSchema,
    expires_at: timestamp,
  })
  .meta({ id: 'GateSessionCreate' })

export const polledSessionSchema = z
  .strictObject({
    object: z.literal('gate_session'),
    id: gateSessionId,
    status: z
      .enum(['pending', 'approved', 'rejected', 'expired'])
      .describe('An expired session returns 410 instead of `expired`.'),
    expires_at: timestamp.optional(),
    approval: z
      .literal('in_progress')
      .optional()
      .describe(
        'Present on a pending session if a person approved it and the service has not answered yet.',
      ),
    claim: z
      .literal('waiting')
      .optional()
      .describe(
        'Present on a pending session if a person approved it and the agent has not sent the code yet.',
      ),
    reason: z
      .enum(['declined', 'closed', 'integrator_failed', 'claim_failed'])
      .optional()
      .describe(
        'Reason for the rejection. `declined`: the person declined; `closed`: the consent page was closed; `integrator_failed`: the service did not provide the account; `claim_failed`: five wrong codes were sent.',
      ),
    problem: z
      .string()
      .optional()
      .describe("Problem with the service's response, for `integrator_failed`."),
    gate_account_id: z.string().optional(),
    account_name: z.string().optional(),
    delivery_bundle: bundleSchema.optional(),
    docs_url: z.url().optional(),
    accepted_env_vars: z
      .array(z.string())
      .optional()
      .describe(
        "Additional variables that the person allowed in the agent's env file. Variables without the service's `env_prefix` that are not listed belong in a separate file.",
      ),
  })
  .meta({ id: 'GateSessionPollData' })

export const consentSchema = z
  .strictObject({
    object: z.literal('gate_consent'),
    gate_session_id: gateSessionId,
    kind: z.enum(['signup', 'login']),
    status: z.literal('pending'),
    approval: z
      .literal('in_progress')
      .optional()
      .describe('Present if a person already approved and the service has not answered yet.'),
    claim: z
      .literal('waiting')
      .optional()
      .describe('Present if a person already approved and the agent has not sent the code yet.'),
    account_name: z.string(),
    metadata: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Data from the agent for the service, unverified. Absent if there is none.'),
    service: registryEntrySchema,
    variables: z
      .array(
        z.strictObject({
          key: z.string(),
          name: z.string(),
          secret: z.boolean(),
          group: z
            .enum(['verified', 'service', 'other', 'refused'])
            .describe(
              "`verified`: starts with the service's verified name, or belongs to Gate; `service`: starts with the service's id; `refused`: must never be written to an env file; `other`: any other name.",
            ),
        }),
      )
      .optional()
      .describe('Variables that the agent gets. Signups only.'),
    approve_token: z
      .string()
      .describe('Token for approving this session. Valid until the session is resolved.'),
    confirmation_code: confirmationCodeSchema,
    requested_by: z.strictObject({
      ip_address: z.string().nullable(),
      user_agent: z.string().nullable(),
      at: timestamp,
      network: z
        .strictObject({
          same: z
            .boolean()
            .nullable()
            .describe(
              "True if the agent's request came from the same network (IPv4 /24, IPv6 /48) as this request; null if the agent's address is unknown.",
            ),
          country: z
            .string()
            .nullable()
            .describe("Country of the agent's address; null if unknown."),
          operator: z
            .string()
            .nullable()
            .describe("Operator of the agent's network; null if unknown."),
        })
        .meta({ id: 'GateRequesterNetwork' }),
    }),
    expires_at: timestamp,
  })
  .meta({ id: 'GateConsent' })

export const cancelledSessionSchema = z
  .strictObject({
    object: z.enum(['gate_session', 'gate_login_session']),
    id: gateSessionId,
    status: z
      .enum(['rejected', 'pending'])
      .describe(
        '`pending`: the page is closing; the session is rejected unless it is opened again within 3 seconds.',
      ),
  })
  .meta({ id: 'GateSessionCancellation' })

export const cancelQuery = z.object({
  closing: z
    .string()
    .optional()
    .describe(
      '`1` if the page is being closed: the session is rejected unless the page is opened again within 3 seconds.',
    ),
})

export const ackBody = z
  .strictObject({
    ack_token: z.string().describe('Token from the decrypted `gate` envelope, `gtack_...`.'),
  })
  .meta({ id: 'AcknowledgeGateSessionDeliveryRequest' })

export const acknowledgementSchema = z
  .strictObject({
    object: z.literal('gate_session_delivery'),
    gate_session_id: gateSessionId,
    status: z.literal('acknowledged'),
  })
  .meta({ id: 'GateSessionDeliveryAcknowledgement' })

type SessionFields = Pick<
  z.output<typeof createSessionBody>,
  'account_name' | 'metadata' | 'delivery'
>

/** Returns the normalized fields, named as in events. Throws 422 naming the invalid ones. */
export function checkedSignupFields({ account_name, metadata, delivery }: SessionFields) {
  const checked = checkAll({
    account_name: () => checkedAccountName(account_name),
    metadata: () => checkedMetadata(metadata),
    delivery: () => checkedDelivery(delivery),
  })
  const { key_id: delivery_key_id, public_key: delivery_public_key } = checked.delivery
  return {
    account_name: checked.account_name,
    metadata: checked.metadata,
    delivery_key_id,
    delivery_public_key,
  }
}

export const signupMembers = z.object(createSessionBody.shape).partial()

/** Throws 422 naming the invalid fields among those that are present. */
export function checkSignupFields(members: z.output<typeof signupMembers>): void {
  const { account_name, metadata, delivery } = members
  checkPresent<Record<'name' | 'metadata' | 'delivery', unknown>>({
    name: account_name !== undefined && (() => checkedAccountName(account_name)),
    metadata: metadata && (() => checkedMetadata(metadata)),
    delivery: delivery && (() => checkedDelivery(delivery)),
  })
}

function invalidSignupField(field: Omit<FieldIssue, 'received'>) {
  return invalidField(field, { parameter_set: createParameterSet }, 'gate.validation_failed')
}

function checkedAccountName(name: string): string {
  const trimmed = name.trim()
  const isShort = characterCount(trimmed) <= signupBounds.accountName
  if (isShort && isOneLine(trimmed) && isVisible(trimmed)) return trimmed
  const expected = `1-${signupBounds.accountName} characters in one line, no control or direction characters`
  throw invalidSignupField({ name: 'account_name', issue: 'invalid', expected })
}

function checkedMetadata(metadata: Record<string, unknown> | undefined): string | null {
  if (metadata === undefined) return null
  const tooLarge = (expected: string) =>
    invalidSignupField({ name: 'metadata', issue: 'too_large', expected })
  if (Object.keys(metadata).length > signupBounds.metadataKeys) {
    throw tooLarge(`at most ${signupBounds.metadataKeys} members`)
  }
  if (!isStorable(metadata, signupBounds.metadataDepth)) {
    const expected = `JSON nested at most ${signupBounds.metadataDepth} deep, with numbers of double precision`
    throw invalidSignupField({ name: 'metadata', issue: 'invalid', expected })
  }
  const text = JSON.stringify(metadata)
  if (Buffer.byteLength(text) <= signupBounds.metadataBytes) return text
  throw tooLarge(`at most ${signupBounds.metadataBytes} bytes of JSON`)
}

// Returns true if JSON preserves the value. An overflowing number such as 1e400 would become null.
function isStorable(value: unknown, depth: number): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  return depth > 0 && Object.values(value).every((member) => isStorable(member, depth - 1))
}

function checkedDelivery(delivery: DeliveryRequest): DeliveryRequest {
  if (!isUsablePublicKey(delivery.public_key)) {
    throw invalidSignupField({
      name: 'delivery.public_key',
      issue: 'invalid',
      expected: 'a raw X25519 public key',
    })
  }
  const expected = 'base64url of the SHA-256 of the raw public key'
  const keyId = deliveryKeyId(Buffer.from(delivery.public_key, 'base64url'))
  if (delivery.key_id !== keyId)
    throw invalidSignupField({ name: 'delivery.key_id', issue: 'mismatch', expected })
  return delivery
}
