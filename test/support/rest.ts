import { z } from 'zod'
import { visitorDetailSchema } from '../../services/readback/schemas/fingerprints.ts'
import {
  sessionDetailSchema,
  sessionSummarySchema,
} from '../../services/readback/schemas/sessions.ts'
import { validatingFetch } from './described.ts'

/** Creates a client that reads the REST API with a secret key, and checks responses against /openapi.json. */
export function createRest(baseUrl: string, secretKey: string) {
  let described: Promise<typeof fetch> | undefined

  async function get<T>(path: string, schema: z.ZodType<T>): Promise<T> {
    described ??= validatingFetch(baseUrl)
    const checked = await described
    const response = await checked(baseUrl + path, {
      headers: { authorization: `Bearer ${secretKey}` },
    })
    const text = await response.text()
    if (response.status !== 200) throw new Error(`GET ${path}: ${response.status} ${text}`)
    return schema.parse(z.object({ data: z.unknown() }).parse(JSON.parse(text)).data)
  }

  return {
    session: (id: string) => get(`/v1/sessions/${id}`, sessionDetailSchema),
    sessions: () => get('/v1/sessions?limit=200', z.array(sessionSummarySchema)),
    /** Returns sessions, newest decision first. */
    searchSessions: (search: string) =>
      get(`/v1/sessions?search=${encodeURIComponent(search)}`, z.array(sessionSummarySchema)),
    visitor: (id: string) => get(`/v1/fingerprints/${id}`, visitorDetailSchema),
  }
}
