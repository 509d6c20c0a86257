import type { FastifyInstance } from 'fastify'

export const publicUrl = 'https://tidegate.example'

export interface Send {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  url: string
  /** Secret key or token. */
  key?: string | undefined
  /** Body to send as JSON. */
  body?: unknown
  /** Raw text to send instead of `body`. */
  payload?: string
  headers?: Record<string, string>
  /** IP address of the client. */
  ip?: string
}

/** Sends a request without a socket. Returns the response with the parsed JSON body. */
export async function sendTo(
  app: FastifyInstance,
  { method = 'GET', url, key, ip, ...content }: Send,
) {
  const {
    body,
    headers = {},
    payload = body === undefined ? undefined : JSON.stringify(body),
  } = content
  const response = await app.inject({
    method,
    url,
    ...(ip !== undefined && { remoteAddress: ip }),
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(payload !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(payload !== undefined && { payload }),
  })
  const { statusCode: status, body: text } = response
  return { status, headers: response.headers, body: text ? JSON.parse(text) : undefined }
}
