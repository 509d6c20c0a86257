import type { Request } from '../http.ts'
import type { Headers, World } from '../world.ts'

type Body = Request['body']

/** Sends one request with each of the bodies; their names say what is about them. */
export async function withBodies(
  { record }: World,
  { name, ...request }: Request & { name: string },
  bodies: Record<string, Body>,
): Promise<void> {
  for (const [what, body] of Object.entries(bodies))
    await record({ name: `${name}: ${what}`, ...request, body })
}

type Bare = Omit<Request, 'body' | 'headers'> & {
  name: string
  /** A function where each request needs other ones. */
  headers?: Headers | (() => Headers)
}

/** Bodies that are none before any member of them is looked at. */
export async function withoutBody(
  { record }: World,
  { name, headers = {}, ...request }: Bare,
): Promise<void> {
  const send = (what: string, body?: Body, type?: string) => {
    const own = typeof headers === 'function' ? headers() : headers
    const typed = type === undefined ? own : { ...own, 'content-type': type }
    return record({ name: `${name}: ${what}`, ...request, headers: typed, body })
  }
  const json = 'application/json'
  await send('no body')
  await send('no JSON', '{"name"', json)
  await send('empty JSON', '', json)
  await send('a list', [])
  await send('null', 'null', json)
  await send('a text', '"text"', json)
  await send('no content type', '{}')
  await send('another content type', '{}', 'text/plain')
  await send('a form', 'a=b', 'application/x-www-form-urlencoded')
  await send('JSON with a charset', '{"unknown":true}', 'application/json; charset=utf-8')
  await send('too large', `"${'x'.repeat(256 * 1024)}"`, json)
}
