import { z } from 'zod'
import { subscribableTypes } from '../../../infra/wire/webhooks/event-types.ts'
import { askServer } from '../server.ts'
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

/** Asks the API of one organization. ApiError: what the server refused; see askServer. */
export interface Api {
  request<T>(request: Request<T>): Promise<T>
}

export function createApi({ baseUrl, secretKey, organizationId }: Target): Api {
  const base = `/v1/organizations/${organizationId}`
  return {
    request: ({ path, ...request }) =>
      askServer({ ...request, baseUrl, path: base + path, bearer: secretKey }),
  }
}
