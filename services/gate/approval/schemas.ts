import { z } from 'zod'

const gateSessionId = z.string().describe('`gate_...`')

export const approveBody = z
  .strictObject({
    approve_token: z.string().max(200).optional().describe('From the consent data; only the newest is good.'),
    sealed_token: z
      .string()
      .max(192 * 1024)
      .optional()
      .describe('What the SDK on the consent page was handed for its session.'),
    session_id: z
      .string()
      .max(200)
      .optional()
      .describe('`sid_...` of that session; checked where it is given.'),
  })
  .meta({ id: 'ApproveGateSessionRequest' })

const approved = z.literal('approved')

/** By `object`: of a signup, or of a dashboard login. */
export const approvedSchema = z
  .discriminatedUnion('object', [
    z.strictObject({ object: z.literal('gate_session'), id: gateSessionId, status: approved }),
    z.strictObject({
      object: z.literal('gate_login_session'),
      id: gateSessionId,
      status: approved,
      code: z.string().describe('`gtcode_...`; the service exchanges it once, within five minutes.'),
      redirect_url: z
        .string()
        .nullable()
        .describe("The service's dashboard with `code` in the query; null once the service has none."),
    }),
  ])
  .meta({ id: 'GateSessionApproval' })
