import { z } from 'zod'
import { ApiError } from '../../../../infra/errors/errors.ts'
import type { Answer } from '../../loopback.ts'
import { askServer } from '../../server.ts'

export interface DashboardOptions {
  baseUrl: string
  secretKey: string
  tell(line: string): void
}

const loginSchema = z.object({ gate_account_id: z.string(), account_name: z.string() })

/** The page behind `dashboard_login_url`: exchanges the code for the account, which is logged in with that. */
export async function answerLogin(code: string, options: DashboardOptions): Promise<Answer> {
  const { baseUrl, secretKey, tell } = options
  const request = { baseUrl, method: 'POST', path: '/v1/gate/login-sessions/consume' } as const
  try {
    const account = await askServer({ ...request, bearer: secretKey, body: { code }, schema: loginSchema })
    tell(`${account.gate_account_id} "${account.account_name}" has logged in`)
    return page(200, { title: `Logged in as ${account.account_name}`, text: account.gate_account_id })
  } catch (error) {
    const why = error instanceof ApiError ? error.message : 'The server does not answer.'
    tell(`A login failed: ${why}`)
    return page(403, { title: 'Not logged in', text: why })
  }
}

/** A page with nothing but text. */
export function page(status: number, { title, text }: { title: string; text: string }): Answer {
  const [heading, body] = [escaped(title), escaped(text)]
  return {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cache-control': 'no-store',
      // The address holds a code.
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
    body: `<!doctype html><html lang="en"><title>${heading}</title><h1>${heading}</h1><p>${body}</p></html>\n`,
  }
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
