import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { confirmationCodeSchema } from '../../../infra/wire/gate.ts'

export const loginSessionBody = z
  .strictObject({ service_id: z.string() })
  .meta({ id: 'CreateGateLoginSessionRequest' })

export const loginSessionSchema = z
  .strictObject({
    object: z.literal('gate_login_session'),
    id: z.string().describe('gate_...'),
    status: z.literal('pending'),
    consent_url: z.url().describe('Where a person approves the login, in a browser.'),
    confirmation_code: confirmationCodeSchema,
    expires_at: timestamp,
  })
  .meta({ id: 'GateLoginSession' })

export const loginCodeBody = z
  .strictObject({ code: z.string().describe('gtcode_...') })
  .meta({ id: 'ConsumeGateLoginSessionRequest' })

export const dashboardLoginSchema = z
  .strictObject({
    object: z.literal('gate_dashboard_login'),
    gate_account_id: z.string().describe('gacct_...'),
    account_name: z.string(),
  })
  .meta({ id: 'GateDashboardLogin' })
