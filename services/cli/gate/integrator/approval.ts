import { z } from 'zod'
import { deliveryRequestSchema } from '../../../../infra/wire/delivery-envelope.ts'
import { directType } from '../../../../infra/wire/webhooks/direct-call.ts'
import { verifySignature } from '../../../../infra/wire/webhooks/verify.ts'
import type { Answer, LoopbackRequest } from '../../loopback.ts'
import type { Accounts } from './accounts.ts'

const signupSchema = z.object({
  service_id: z.string(),
  gate_session_id: z.string(),
  gate_account_id: z.string(),
  account_name: z.string(),
  delivery: deliveryRequestSchema,
})
export type ApprovedSignup = z.output<typeof signupSchema>

const eventSchema = z.object({ type: z.literal(directType), data: signupSchema })

/** How the sample service fails, for whoever wants to see what becomes of it. */
export const failures = ['never', '500', 'refuse', 'garbage', 'timeout'] as const
export type Failure = (typeof failures)[number]

export interface ApprovalOptions {
  accounts: Accounts
  serviceId: string
  /** Of the webhook endpoint. */
  secret: string
  fail: Failure
  /** Says what happens; without any value that is delivered. */
  tell(line: string): void
}

/** The answer to a delivery of `gate.session.approved`: credentials, sealed to the key of whoever signed up. */
export async function answerApproval(
  { headers, body }: Pick<LoopbackRequest, 'headers' | 'body'>,
  { accounts, serviceId, secret, fail, tell }: ApprovalOptions,
): Promise<Answer> {
  const verification = verifySignature({ headers, body, secrets: [secret], now: Date.now() })
  if (!verification.valid) {
    tell(`A request to the webhook was refused: ${verification.problem}`)
    return { status: 401 }
  }
  const signup = approvalIn(body)
  if (signup?.service_id !== serviceId) return { status: 422 }
  if (fail !== 'never') return failure(signup, { fail, tell })
  const { isNew, envelope } = accounts.open(signup)
  const { gate_session_id, gate_account_id, account_name } = signup
  tell(`${gate_session_id}: ${isNew ? 'a new account' : 'again'}, ${gate_account_id} "${account_name}"`)
  const json = JSON.stringify({ encrypted_delivery: envelope })
  return { status: 200, headers: { 'content-type': 'application/json' }, body: json }
}

function failure(
  { gate_session_id }: ApprovedSignup,
  { fail, tell }: Pick<ApprovalOptions, 'fail' | 'tell'>,
): Answer | Promise<Answer> {
  tell(`${gate_session_id}: fails as it was asked to (${fail})`)
  if (fail === 'timeout') return new Promise(() => {})
  if (fail === 'garbage') return { status: 200, body: 'this is no JSON' }
  return { status: fail === '500' ? 500 : 403 }
}

function approvalIn(body: string): ApprovedSignup | undefined {
  try {
    return eventSchema.safeParse(JSON.parse(body)).data?.data
  } catch {
    return undefined
  }
}
