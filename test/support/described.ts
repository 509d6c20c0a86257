import { gunzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { createDescription, type Description, type Seen } from './description.ts'

export interface Described {
  /** Problems found so far. */
  problems: readonly string[]
  /** Returns the number of compared responses. */
  count(): number
  /** Throws if there are problems. */
  check(): void
}

/**
 * Compares every response of the app, including errors, with its own /openapi.json. Closing the app throws if one
 * differed. Call it before adding routes. Responses of the HTTP parser are not compared.
 */
export function validateResponses(app: FastifyInstance): Described {
  const problems: string[] = []
  let description: Description | undefined
  let compared = 0
  app.addHook('onSend', (request, reply, payload, done) => {
    description ??= createDescription(app.swagger())
    const url = request.routeOptions.url?.replace(/:([A-Za-z]+)/g, '{$1}')
    const path = url ?? request.url.split('?', 1)[0] ?? ''
    const { method } = request
    const seen = {
      method,
      path,
      status: reply.statusCode,
      headers: reply.getHeaders(),
      body: textOf(reply.getHeader('content-encoding') === 'gzip' ? unzipped(payload) : payload),
    }
    problems.push(...description.problemsOf(seen))
    compared++
    done()
  })
  const check = () => throwIfAny(problems)
  app.addHook('onClose', async () => check())
  return { problems, count: () => compared, check }
}

/** Returns a fetch that throws if a response differs from the server's /openapi.json. */
export async function validatingFetch(baseUrl: string): Promise<typeof fetch> {
  const document = await fetch(`${baseUrl}/openapi.json`)
  const description = createDescription(await document.json())
  return async (input, init) => {
    const request = new Request(input, init)
    const response = await fetch(request)
    throwIfAny(description.problemsOf(await seenOf(request, response.clone())))
    return response
  }
}

async function seenOf({ method, url }: Request, response: Response): Promise<Seen> {
  const body = (await response.text()) || null
  const headers = Object.fromEntries(response.headers)
  return { method, path: new URL(url).pathname, status: response.status, headers, body }
}

function throwIfAny(problems: readonly string[]): void {
  if (problems.length === 0) return
  const shown = [...new Set(problems)].slice(0, 20).join('\n')
  throw new Error(`${problems.length} differences from /openapi.json:\n${shown}`)
}

const unzipped = (payload: unknown) => (Buffer.isBuffer(payload) ? gunzipSync(payload) : payload)

function textOf(payload: unknown): string | null {
  if (typeof payload === 'string') return payload || null
  return Buffer.isBuffer(payload) ? payload.toString() : null
}
