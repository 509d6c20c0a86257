import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { deliveryRequestSchema } from '../../../infra/wire/delivery-envelope.ts'
import { confirmationCodeSchema } from '../../../infra/wire/gate.ts'
import { bundleSchema } from '../approval/bundle.ts'
import { registryEntrySchema, serviceIdSchema } from '../registry/schemas.ts'
import { bounds } from './checked-request.ts'

const gateSessionId = z.string().regex(/^gate_[0-9a-hjkmnp-tv-z]{26}$/)

export const createSessionBody = z
  .strictObject({
    service_id: serviceIdSchema,
    account_name: z
      .string()
      .describe(
        `1-${bounds.accountName} characters in one line, without outer spaces; the person who decides sees it.`,
      ),
    metadata: z
      .record(z.string(), z.unknown())
      .optional()
      .describe(
        `At most ${bounds.metadataKeys} members and ${bounds.metadataBytes} bytes of JSON, nested at most ${bounds.metadataDepth} deep. The service gets it as it is.`,
      ),
    delivery: deliveryRequestSchema,
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
    reason: z
      .enum(['declined', 'closed', 'integrator_failed'])
      .optional()
      .describe(
        'Why it was rejected. closed: the consent page was closed; integrator_failed: the service did not answer the approval as it must.',
      ),
    problem: z
      .string()
      .optional()
      .describe("With integrator_failed: what was wrong with the service's answers."),
    gate_account_id: z.string().optional(),
    account_name: z.string().optional(),
    delivery_bundle: bundleSchema.optional(),
    docs_url: z.url().optional(),
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
    account_name: z.string(),
    metadata: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('What the service gets along with it, as the agent wrote it; absent when there is none.'),
    service: registryEntrySchema,
    approve_token: z.string().describe('Void as soon as anyone asks for another.'),
    confirmation_code: confirmationCodeSchema,
    requested_by: z.strictObject({
      ip_address: z.string().nullable(),
      user_agent: z.string().nullable(),
      at: timestamp,
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
