import { z } from 'zod'

const gateSessionId = z.string().describe('`gate_...`')

export const approveBody = z
  .strictObject({
    approve_token: z
      .string()
      .max(200)
      .optional()
      .describe('From the consent data of this session.'),
    sealed_token: z
      .string()
      .max(192 * 1024)
      .optional()
      .describe(
        'What the SDK on the consent page was handed for its session, with the approve token as `binding`.',
      ),
    account_name: z
      .string()
      .max(400)
      .optional()
      .describe('Needed where the verdict is not `human`: a person types it.'),
    session_id: z
      .string()
      .max(200)
      .optional()
      .describe('`sid_...` of that session; checked where it is given.'),
    accepted_env_vars: z
      .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/))
      .max(100)
      .optional()
      .describe('Of a signup: the variables that may go into the env file of the agent.'),
  })
  .meta({ id: 'ApproveGateSessionRequest' })

export const approvedSchema = z
  .discriminatedUnion('object', [
    z.strictObject({
      object: z.literal('gate_session'),
      id: gateSessionId,
      status: z
        .enum(['approved', 'pending'])
        .describe('pending: the agent has to tell the code first.'),
      claim_code: z
        .string()
        .optional()
        .describe('While it is pending, for the page that approved and for no other.'),
      receipt_url: z
        .url()
        .optional()
        .describe(
          'Once it is approved, for the same page: where it can be forgotten who asked and approved.',
        ),
    }),
    z.strictObject({
      object: z.literal('gate_login_session'),
      id: gateSessionId,
      status: z.literal('approved'),
      code: z
        .string()
        .describe('`gtcode_...`; the service exchanges it once, within five minutes.'),
      redirect_url: z
        .string()
        .nullable()
        .describe(
          "The service's dashboard with `code` in the query; null once the service has none.",
        ),
    }),
  ])
  .meta({ id: 'GateSessionApproval' })
