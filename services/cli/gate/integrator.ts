import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { Random } from '../../../infra/ids.ts'
import { escapeHtml, parseJsonOrUndefined } from '../../../infra/text.ts'
import { deliveryRequestSchema, sealEnvelope } from '../../../infra/wire/delivery-envelope.ts'
import { envPrefixOf } from '../../../infra/wire/gate.ts'
import { directEventType } from '../../../infra/wire/webhooks/direct-call.ts'
import { verifySignature } from '../../../infra/wire/webhooks/signature.ts'
import type { LoopbackRequest, LoopbackResponse } from '../loopback-server.ts'
import { requestServer } from '../request-server.ts'

const signupSchema = z.object({
  service_id: z.string(),
  gate_session_id: z.string(),
  gate_account_id: z.string(),
  account_name: z.string(),
  // A newer server may add members.
  delivery: deliveryRequestSchema.strip(),
})
type ApprovedSignup = z.output<typeof signupSchema>

const eventSchema = z.object({ type: z.literal(directEventType), data: signupSchema })

export const failureModes = ['never', '500', 'refuse', 'garbage', 'timeout'] as const
export type FailureMode = (typeof failureModes)[number]

interface ApprovalOptions {
  accounts: Accounts
  serviceId: string
  secret: string
  fail: FailureMode
  print(line: string): void
}

/** Handles the webhook of an approved signup: responds with encrypted credentials, or simulates a failure. */
export async function handleApproval(
  { headers, body }: Pick<LoopbackRequest, 'headers' | 'body'>,
  { accounts, serviceId, secret, fail, print }: ApprovalOptions,
): Promise<LoopbackResponse> {
  const verification = verifySignature({ headers, body, secrets: [secret], now: Date.now() })
  if (!verification.valid) {
    print(`Rejected a webhook request: ${verification.problem}`)
    return { status: 401 }
  }
  const signup = eventSchema.safeParse(parseJsonOrUndefined(body)).data?.data
  if (signup?.service_id !== serviceId) return { status: 422 }
  if (fail !== 'never') return simulateFailure(signup, { fail, print })
  const { isNew, envelope } = accounts.open(signup)
  const { gate_session_id, gate_account_id, account_name } = signup
  print(
    `${gate_session_id}: ${isNew ? 'created account' : 'repeated request for account'} ${gate_account_id} "${account_name}"`,
  )
  const json = JSON.stringify({ encrypted_delivery: envelope })
  return { status: 200, headers: { 'content-type': 'application/json' }, body: json }
}

function simulateFailure(
  { gate_session_id }: ApprovedSignup,
  { fail, print }: Pick<ApprovalOptions, 'fail' | 'print'>,
): LoopbackResponse | Promise<LoopbackResponse> {
  print(`${gate_session_id}: simulating a failure (--fail ${fail})`)
  if (fail === 'timeout') return new Promise(() => {})
  if (fail === 'garbage') return { status: 200, body: 'this is not JSON' }
  return { status: fail === '500' ? 500 : 403 }
}

export function variableNames(serviceId: string) {
  const prefix = envPrefixOf(serviceId)
  return { apiKey: `${prefix}API_KEY`, accountId: `${prefix}ACCOUNT_ID` }
}

export type Accounts = ReturnType<typeof createAccounts>

export function createAccounts(random: Random) {
  const keys = new Map<string, string>()
  return {
    /** Creates credentials on the first call for a signup, and returns them sealed. */
    open({ gate_session_id, gate_account_id, service_id, delivery }: ApprovedSignup) {
      const existing = keys.get(gate_session_id)
      const key = existing ?? `demo_${random(24).toString('base64url')}`
      keys.set(gate_session_id, key)
      const names = variableNames(service_id)
      const outputs = { [names.apiKey]: key, [names.accountId]: gate_account_id }
      return {
        isNew: existing === undefined,
        envelope: sealEnvelope({ version: 1, outputs }, { delivery, random }),
      }
    },
  }
}

const loginSchema = z.object({ gate_account_id: z.string(), account_name: z.string() })

/** Serves `dashboard_login_url`: exchanges the code for the account, and responds with a page that names it. */
export async function handleLogin(
  code: string,
  { baseUrl, secretKey, print }: { baseUrl: string; secretKey: string; print(line: string): void },
): Promise<LoopbackResponse> {
  const request = { baseUrl, method: 'POST', path: '/v1/gate/login-sessions/consume' } as const
  try {
    const account = await requestServer({
      ...request,
      bearer: secretKey,
      body: { code },
      schema: loginSchema,
    })
    print(`${account.gate_account_id} "${account.account_name}" logged in`)
    return htmlPage(200, {
      title: `Logged in as ${account.account_name}`,
      text: account.gate_account_id,
    })
  } catch (error) {
    const problem = error instanceof ApiError ? error.message : 'The server is not responding.'
    print(`Login failed: ${problem}`)
    return htmlPage(403, { title: 'Not logged in', text: problem })
  }
}

export function htmlPage(
  status: number,
  { title, text }: { title: string; text: string },
): LoopbackResponse {
  const [heading, body] = [escapeHtml(title), escapeHtml(text)]
  return {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cache-control': 'no-store',
      // The URL contains the login code.
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
    body: `<!doctype html><html lang="en"><title>${heading}</title><h1>${heading}</h1><p>${body}</p></html>\n`,
  }
}
