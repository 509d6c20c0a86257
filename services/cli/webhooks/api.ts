import { z } from 'zod'
import { ApiError, type ErrorCode, errorTable } from '../../../infra/http/errors.ts'
import { subscribableTypes } from '../../../infra/webhooks/event-types.ts'
import type { Target } from './target.ts'

/** What these commands read of a webhook endpoint; `signing_secret` only where it was just made. */
export const endpointSchema = z.object({
  id: z.string(),
  url: z.string(),
  status: z.enum(['active', 'disabled']),
  event_types: z.array(z.enum(subscribableTypes)),
  signing_secret: z.string().optional(),
})
export type Endpoint = z.infer<typeof endpointSchema>

interface Request<T> {
  method: 'GET' | 'POST' | 'PATCH'
  /** Below `/v1/organizations/{organizationId}`. */
  path: string
  body?: object
  /** Of the answer's `data`. */
  schema: z.ZodType<T>
}

/** Asks the API of one organization. ApiError: what the server refused. */
export interface Api {
  request<T>(request: Request<T>): Promise<T>
}

const timeoutMs = 30_000

export function createApi({ baseUrl, secretKey, organizationId }: Target): Api {
  async function request<T>({ method, path, body, schema }: Request<T>): Promise<T> {
    const url = `${baseUrl}/v1/organizations/${organizationId}${path}`
    const headers = {
      authorization: `Bearer ${secretKey}`,
      ...(body ? { 'content-type': 'application/json' } : {}),
    }
    const sent = body ? { body: JSON.stringify(body) } : {}
    const signal = AbortSignal.timeout(timeoutMs)
    const response = await fetch(url, { method, headers, signal, ...sent }).catch((cause) => {
      throw new Error(`${baseUrl} does not answer; is tidegate dev running?`, { cause })
    })
    const text = await response.text()
    if (!response.ok) throw refusal(response.status, text)
    return z.object({ data: schema }).parse(JSON.parse(text)).data
  }
  return { request }
}

const field = z.object({ name: z.string(), issue: z.string(), expected: z.string().exactOptional() })
const envelope = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    details: z
      .object({
        fields: z.array(field).exactOptional(),
        allowed_values: z.array(z.string()).exactOptional(),
      })
      .exactOptional(),
  }),
})

/** The error of the envelope; where something other than Tidegate answered, its status. */
function refusal(status: number, text: string): Error {
  const { error } = parsed(text) ?? {}
  if (!error || !isCode(error.code)) return new Error(`The server answered with ${status}.`)
  const { code, message, details } = error
  return new ApiError(code, { message, ...(details && { details }) })
}

function parsed(text: string): z.infer<typeof envelope> | undefined {
  try {
    return envelope.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

const isCode = (code: string): code is ErrorCode => code in errorTable
