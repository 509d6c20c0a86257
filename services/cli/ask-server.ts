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

/** Error for a missing response or one that is not from Tidegate. The same request may succeed later. */
export class NoValidResponse extends Error {
  override name = 'NoValidResponse'
}

const timeoutMs = 30_000

/**
 * Sends a request to a Tidegate server and returns the response data. Throws an ApiError with the status and `retry-after`
 * of an error response, and NoValidResponse otherwise.
 */
export async function requestServer<T>(request: ServerRequest<T>): Promise<T> {
  const { baseUrl, schema } = request
  const response = await send(request).catch((cause) => {
    throw new NoValidResponse(`${baseUrl} is not responding; is tidegate dev running?`, { cause })
  })
  const text = await response.text().catch((cause) => {
    throw new NoValidResponse(
      `${baseUrl} closed the connection before its response was complete.`,
      {
        cause,
      },
    )
  })
  if (!response.ok) throw toError(response, text)
  const parsed = z.object({ data: schema }).safeParse(parsedJson(text))
  if (parsed.success) return parsed.data.data
  throw new NoValidResponse(`The response of ${baseUrl} is not a Tidegate response.`, {
    cause: parsed.error,
  })
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
const errorEnvelope = z.object({
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

function toError({ status, headers }: Response, text: string): Error {
  const { error } = errorEnvelope.safeParse(parsedJson(text)).data ?? {}
  if (!error || !isCode(error.code)) return new NoValidResponse(`The server returned ${status}.`)
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
