import { z } from 'zod'
import { ApiError, type ErrorCode, errorTable } from '../../infra/errors/errors.ts'
import { parsedJson } from '../../infra/text.ts'

export interface ServerRequest<T> {
  baseUrl: string
  method: 'GET' | 'POST' | 'PATCH'
  path: string
  bearer?: string
  headers?: Record<string, string>
  body?: object
  schema: z.ZodType<T>
}

/** Nothing answered, or something that is not Tidegate. The same request may succeed later. */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
}

const timeoutMs = 30_000

/** Asks a Tidegate server. ApiError: what it refused, with its status and its `retry-after`; else NoAnswer. */
export async function askServer<T>(request: ServerRequest<T>): Promise<T> {
  const { baseUrl, schema } = request
  const response = await send(request).catch((cause) => {
    throw new NoAnswer(`${baseUrl} does not answer; is tidegate dev running?`, { cause })
  })
  const text = await response.text().catch((cause) => {
    throw new NoAnswer(`${baseUrl} broke off its answer.`, { cause })
  })
  if (!response.ok) throw refusal(response, text)
  const answer = z.object({ data: schema }).safeParse(parsedJson(text))
  if (answer.success) return answer.data.data
  throw new NoAnswer(`${baseUrl} did not answer as Tidegate does.`, { cause: answer.error })
}

function send({
  baseUrl,
  path,
  method,
  bearer,
  headers,
  body,
}: ServerRequest<unknown>): Promise<Response> {
  return fetch(baseUrl + path, {
    method,
    headers: {
      ...headers,
      ...(bearer && { authorization: `Bearer ${bearer}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
    signal: AbortSignal.timeout(timeoutMs),
    ...(body && { body: JSON.stringify(body) }),
  })
}

const field = z.object({
  name: z.string(),
  issue: z.string(),
  expected: z.string().exactOptional(),
})
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

function refusal({ status, headers }: Response, text: string): Error {
  const { error } = envelope.safeParse(parsedJson(text)).data ?? {}
  if (!error || !isCode(error.code)) return new NoAnswer(`The server answered with ${status}.`)
  const { code, message, details } = error
  const retryAfter = headers.get('retry-after')
  return new ApiError(code, {
    message,
    status,
    ...(details && { details }),
    ...(retryAfter && { headers: { 'retry-after': retryAfter } }),
  })
}

const isCode = (code: string): code is ErrorCode => code in errorTable
