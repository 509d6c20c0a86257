import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'

export const agentAccountSchema = z
  .strictObject({
    object: z.literal('gate_agent_account'),
    id: z.string().describe('Account, `gacct_...`.'),
    service_id: z.string(),
    account_name: z
      .string()
      .nullable()
      .describe('Name that the person approved; null once it is erased.'),
    created_at: timestamp,
    token: z
      .strictObject({
        status: z.enum(['active', 'expired', 'revoked']),
        last_used_at: timestamp.describe('Accurate to a day; `created_at` if it was never used.'),
        expires_at: timestamp.describe('90 days after `last_used_at`.'),
      })
      .nullable()
      .describe('Agent token; null if the service had no `dashboard_login_url` at the signup.'),
  })
  .meta({ id: 'GateAgentAccount' })
export type GateAgentAccount = z.output<typeof agentAccountSchema>

/** Signups that a request counts at most. */
export const maxCountedSignups = 100_000

const count = z.int().min(0)

const serviceCountsSchema = z
  .strictObject({
    service_id: z.string(),
    started: count.describe('All signups; the sum of `created` and the counts after `delivered`.'),
    approved: count.describe('A person approved.'),
    created: count.describe('The service created the account.'),
    delivered: count.describe('The agent acknowledged its credentials.'),
    pending: count,
    declined: count,
    closed: count.describe('The person closed the page without deciding.'),
    claim_failed: count.describe('The agent sent five wrong codes.'),
    integrator_failed: count.describe('The service created no account.'),
    expired: count,
  })
  .meta({ id: 'GateServiceSignupCounts' })
export type GateServiceSignupCounts = z.output<typeof serviceCountsSchema>

export const signupCountsSchema = z
  .strictObject({
    object: z.literal('gate_signup_counts'),
    since: timestamp,
    until: timestamp,
    complete: z
      .boolean()
      .describe(
        `False if there were too many signups to read. The counts then cover only the newest ${maxCountedSignups}, from \`since\` on.`,
      ),
    services: z.array(serviceCountsSchema).describe('Newest service first.'),
  })
  .meta({ id: 'GateSignupCounts' })
export type GateSignupCounts = z.output<typeof signupCountsSchema>
