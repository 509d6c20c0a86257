import { z } from 'zod'
import { ApiError, type ErrorCode, errorTable } from '../../infra/errors/errors.ts'
import { parseJsonOrUndefined } from '../../infra/text.ts'

export interface ServerRequest<T> {
  baseUrl: string
  method: 'GET' | 'POST' | 'PATCH'
  path: string
  bearer?: string
  headers?: Record<string, string>
  body?: object
  schema: z.ZodType<T>
}

/** Error for a missing response, or one that is not from Tidegate. A retry may succeed. */
export class NoValidResponse extends Error {
  override name = 'NoValidResponse'
}

const timeoutMs = 30_000

/**
 * Sends a request to a Tidegate server and returns the `data` of the response. Throws an ApiError for an error response,
 * with its status and `retry-after`, and NoValidResponse if there is no valid response.
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
  const parsed = z.object({ data: schema }).safeParse(parseJsonOrUndefined(text))
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

const fieldSchema = z.object({
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
        fields: z.array(fieldSchema).exactOptional(),
        allowed_values: z.array(z.string()).exactOptional(),
      })
      .exactOptional(),
  }),
})

function toError({ status, headers }: Response, text: string): Error {
  const { error } = errorEnvelope.safeParse(parseJsonOrUndefined(text)).data ?? {}
  if (!error || !isErrorCode(error.code))
    return new NoValidResponse(`The server returned ${status}.`)
  const { code, message, details } = error
  const retryAfter = headers.get('retry-after')
  return new ApiError(code, {
    message,
    status,
    ...(details && { details }),
    ...(retryAfter && { headers: { 'retry-after': retryAfter } }),
  })
}

const isErrorCode = (code: string): code is ErrorCode => code in errorTable
