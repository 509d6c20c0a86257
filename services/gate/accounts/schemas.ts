import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'

const agentTokenBody = z.strictObject({ agent_token: z.string().describe('agt_...') })
export const verifyBody = agentTokenBody.meta({ id: 'VerifyAgentTokenRequest' })
export const revokeBody = agentTokenBody.meta({ id: 'RevokeAgentTokenRequest' })

export const verificationSchema = z
  .union([
    z.strictObject({ valid: z.literal(false) }),
    z.strictObject({
      valid: z.literal(true),
      gate_account_id: z.string(),
      status: z.literal('active'),
      created_at: timestamp,
      expires_at: timestamp.describe('90 days after the last use, give or take a day.'),
    }),
  ])
  .meta({ id: 'AgentTokenVerification' })
