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

// The name in characters (code points), metadata as UTF-8 of its JSON.
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
        `1-${signupBounds.accountName} characters in one line, without outer spaces; the person who decides sees it.`,
      ),
    metadata: z
      .record(z.string(), z.unknown())
      .meta({ maxProperties: signupBounds.metadataKeys })
      .optional()
      .describe(
        `At most ${signupBounds.metadataKeys} members and ${signupBounds.metadataBytes} bytes of JSON, nested at most ${signupBounds.metadataDepth} deep. The service gets it as it is.`,
      ),
    delivery: deliveryRequestSchema,
    claim: z
      .literal('supported')
      .optional()
      .describe(
        'The agent can be told the code that the consent page shows once a person has approved. Where that is in another network or may be a program, or the service demands it, the signup then waits for `POST .../claim`.',
      ),
  })
  .meta({ id: 'CreateGateSessionRequest' })

export const createdSessionSchema = z
  .strictObject({
    object: z.literal('gate_session'),
    id: gateSessionId,
    status: z.enum(['pending']),
    poll_token: z.string().describe('Shown this once; polls and acknowledges this session.'),
    consent_url: z.url().describe('Where a person approves the signup, in a browser.'),
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
      .describe('A session whose time is over answers 410 instead of expired.'),
    expires_at: timestamp.optional(),
    approval: z
      .literal('in_progress')
      .optional()
      .describe('A person approved; the service has not answered yet. The session is pending.'),
    claim: z
      .literal('waiting')
      .optional()
      .describe('A person approved; the signup waits for the code that the consent page shows.'),
    reason: z
      .enum(['declined', 'closed', 'integrator_failed', 'claim_failed'])
      .optional()
      .describe(
        'Why it was rejected. closed: the consent page was closed, so that a new session is needed; integrator_failed: the service did not answer the approval as it must; claim_failed: five wrong codes were told.',
      ),
    problem: z
      .string()
      .optional()
      .describe("With integrator_failed: what was wrong with the service's answers."),
    gate_account_id: z.string().optional(),
    account_name: z.string().optional(),
    delivery_bundle: bundleSchema.optional(),
    docs_url: z.url().optional(),
    accepted_env_vars: z
      .array(z.string())
      .optional()
      .describe(
        'The variables that the person lets into the env file of the agent; others belong in a file of their own.',
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
      .describe('A person approved already; the service has not answered yet.'),
    claim: z
      .literal('waiting')
      .optional()
      .describe('A person approved already; the agent has yet to tell the code.'),
    account_name: z.string(),
    metadata: z
      .record(z.string(), z.unknown())
      .optional()
      .describe(
        'What the service gets along with it, as the agent wrote it; absent when there is none.',
      ),
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
              'verified: under the name that is verified, or of Gate itself; service: named after the id of the service; refused: no tool may write it.',
            ),
        }),
      )
      .optional()
      .describe('Of a signup: what the agent gets.'),
    approve_token: z.string().describe('Good for this session until it is resolved.'),
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
              'Whether the agent asked from the network (IPv4 /24, IPv6 /48) of whoever reads this; null where its address is not known.',
            ),
          country: z
            .string()
            .nullable()
            .describe('Of the agent, where a database says so; else null.'),
          operator: z
            .string()
            .nullable()
            .describe('Of its network, where a database says so; else null.'),
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
      .describe('pending: the page is closing, and was not opened again so far.'),
  })
  .meta({ id: 'GateSessionCancellation' })

export const cancelQuery = z.object({
  closing: z
    .string()
    .optional()
    .describe(
      '1: the page is being closed. Unless it is opened again within 3 seconds, the session is rejected.',
    ),
})

export const ackBody = z
  .strictObject({ ack_token: z.string().describe('From the envelope that Gate sealed.') })
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

/** ApiError 422 naming the fields that do not fit. */
export function checkedFields({ account_name, metadata, delivery }: SessionFields) {
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

/** ApiError 422 naming those of the members that do not fit, whatever else there is. */
export function checkSignupFields(members: z.output<typeof signupMembers>): void {
  const { account_name, metadata, delivery } = members
  checkPresent<Record<'name' | 'metadata' | 'delivery', unknown>>({
    name: account_name !== undefined && (() => checkedAccountName(account_name)),
    metadata: metadata && (() => checkedMetadata(metadata)),
    delivery: delivery && (() => checkedDelivery(delivery)),
  })
}

function refused(field: Omit<FieldIssue, 'received'>) {
  return invalidField(field, { parameter_set: createParameterSet }, 'gate.validation_failed')
}

function checkedAccountName(name: string): string {
  const trimmed = name.trim()
  const fits =
    characterCount(trimmed) <= signupBounds.accountName && isOneLine(trimmed) && isVisible(trimmed)
  if (fits) return trimmed
  const expected = `1-${signupBounds.accountName} characters in one line, no control or direction characters`
  throw refused({ name: 'account_name', issue: 'invalid', expected })
}

function checkedMetadata(metadata: Record<string, unknown> | undefined): string | null {
  if (metadata === undefined) return null
  const tooLarge = (expected: string) => refused({ name: 'metadata', issue: 'too_large', expected })
  if (Object.keys(metadata).length > signupBounds.metadataKeys) {
    throw tooLarge(`at most ${signupBounds.metadataKeys} members`)
  }
  if (!isStorable(metadata, signupBounds.metadataDepth)) {
    const expected = `JSON nested at most ${signupBounds.metadataDepth} deep, with numbers of double precision`
    throw refused({ name: 'metadata', issue: 'invalid', expected })
  }
  const text = JSON.stringify(metadata)
  if (Buffer.byteLength(text) <= signupBounds.metadataBytes) return text
  throw tooLarge(`at most ${signupBounds.metadataBytes} bytes of JSON`)
}

// Whether JSON keeps the value: a number such as 1e400 would change.
function isStorable(value: unknown, depth: number): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  return depth > 0 && Object.values(value).every((member) => isStorable(member, depth - 1))
}

function checkedDelivery(delivery: DeliveryRequest): DeliveryRequest {
  if (!isUsablePublicKey(delivery.public_key)) {
    throw refused({
      name: 'delivery.public_key',
      issue: 'invalid',
      expected: 'a raw X25519 public key',
    })
  }
  const expected = 'base64url of the SHA-256 of the raw public key'
  const keyId = deliveryKeyId(Buffer.from(delivery.public_key, 'base64url'))
  if (delivery.key_id !== keyId)
    throw refused({ name: 'delivery.key_id', issue: 'mismatch', expected })
  return delivery
}
