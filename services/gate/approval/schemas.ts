import { z } from 'zod'

const gateSessionId = z.string().describe('Gate session, `gate_...`.')

export const approveBody = z
  .strictObject({
    approve_token: z
      .string()
      .max(200)
      .optional()
      .describe('Approve token from the consent data of this session.'),
    sealed_token: z
      .string()
      .max(192 * 1024)
      .optional()
      .describe(
        "Sealed token of the consent page's own session, with the approve token as `binding`.",
      ),
    account_name: z
      .string()
      .max(400)
      .optional()
      .describe('Account name as typed by the person. Required unless the verdict is `human`.'),
    session_id: z
      .string()
      .max(200)
      .optional()
      .describe('Session of the sealed token, `sid_...`. If present, it must match.'),
    accepted_env_vars: z
      .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/))
      .max(100)
      .optional()
      .describe(
        "Signups only: additional variables that the person allows in the agent's env file.",
      ),
  })
  .meta({ id: 'ApproveGateSessionRequest' })

export const approvedSchema = z
  .discriminatedUnion('object', [
    z.strictObject({
      object: z.literal('gate_session'),
      id: gateSessionId,
      status: z
        .enum(['approved', 'pending'])
        .describe('`pending`: the agent must send the claim code first.'),
      claim_code: z
        .string()
        .optional()
        .describe('Claim code, while pending. Returned only to the page that approved.'),
      receipt_url: z
        .url()
        .optional()
        .describe(
          'Page for erasing the personal data of this signup, once approved. Returned only to the page that approved.',
        ),
    }),
    z.strictObject({
      object: z.literal('gate_login_session'),
      id: gateSessionId,
      status: z.literal('approved'),
      code: z
        .string()
        .describe(
          'Login code, `gtcode_...`. The service can exchange it once, within five minutes.',
        ),
      redirect_url: z
        .string()
        .nullable()
        .describe(
          "The service's dashboard with `code` in the query; null if the service no longer has a dashboard.",
        ),
    }),
  ])
  .meta({ id: 'GateSessionApproval' })
