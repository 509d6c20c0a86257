import { exampleNames } from './examples.ts'
import {
  type Answer,
  type Headers,
  headerOf,
  type Request,
  sendRaw,
  send as sendRequest,
} from './http.ts'
import type { Mask } from './mask.ts'

/** An answer with everything masked that differs from run to run. */
export interface Recorded {
  name: string
  method: string
  path: string
  /** JSON body, where the API reference shows the request as an example. */
  request?: unknown
  status: number
  /** `Name: value`, in the order in which they came. */
  headers: string[]
  /** JSON that is written as JSON.stringify writes it; then `text` is absent. */
  json?: unknown
  /** Any other body, by line. */
  text?: string[]
}

type Body = Request['body']

/** Part of a body that is compared; default: all of it. */
export type Compared = 'all' | 'comments' | 'nothing'

export interface Named extends Request {
  name: string
  compared?: Compared
}

/** Headers that say when and where, and those whose value follows from what happened before within a minute. */
const maskedHeaders: Record<string, string> = {
  date: '<date>',
  // A file of a package has the time of its installation.
  'last-modified': '<date>',
  'x-ratelimit-remaining': '<remaining>',
}

/** Sends requests and keeps what was answered. */
export function createRecorder({ baseUrl, mask: maskFully }: { baseUrl: string; mask: Mask }) {
  const recorded: Recorded[] = []
  const names = new Set<string>()

  function keep(named: Named, answer: Answer): Answer {
    const { name, method, path, compared = 'all' } = named
    if (names.has(name)) throw new Error(`two requests are called "${name}"`)
    names.add(name)
    const now = Date.now()
    const requestId = headerOf(answer, 'x-request-id') ?? ''
    const mask = (text: string) =>
      maskFully(requestId === '' ? text : text.replaceAll(requestId, '<request>'), now)
    // The path first: what a client names comes before what it is answered.
    const shownPath = mask(path)
    const headers = headersOf(answer, { compared, mask, method })
    const shownBody = bodyOf(answer, { compared, mask })
    recorded.push({
      name,
      method,
      path: shownPath,
      // Last: a placeholder is numbered when an answer names its value, or else here.
      ...requestOf(named, mask),
      status: answer.status,
      headers,
      ...shownBody,
    })
    return answer
  }

  const send = async (named: Named): Promise<Answer> =>
    keep(named, await sendRequest(baseUrl, named))

  /** Sends the request of the line, such as `GET /v1/sessions`, and keeps its answer. */
  const record = (name: string, line: string, headers?: Headers, body?: Body): Promise<Answer> =>
    send({ name, ...lineOf(line), headers, body })

  return {
    recorded,
    send,
    record,
    /** Sends a request with each of the bodies; their names say what is about them. */
    async recordEach(name: string, line: string, headers: Headers, bodies: Record<string, Body>) {
      for (const [what, body] of Object.entries(bodies))
        await record(`${name}: ${what}`, line, headers, body)
    },
    /** Bodies that are none before any member of them is looked at. `headersOf` is called for each. */
    async recordMalformed(name: string, line: string, headersOf: () => Headers) {
      for (const [what, body, type] of malformed) {
        const typed = type === undefined ? headersOf() : { ...headersOf(), 'content-type': type }
        await record(`${name}: ${what}`, line, typed, body)
      }
    },
    recordRaw: async (name: string, raw: string): Promise<Answer> => {
      const [method = '', path = ''] = raw.split('\r\n', 1)[0]?.split(' ') ?? []
      return keep({ name, method, path: path.slice(0, 100) }, await sendRaw(baseUrl, raw))
    },
    /** Sends a request whose answer is not compared, as one that is repeated until something has happened. */
    ask: (line: string, headers?: Headers, body?: Body): Promise<Answer> =>
      sendRequest(baseUrl, { ...lineOf(line), headers, body }),
  }
}

function lineOf(line: string): Pick<Request, 'method' | 'path'> {
  const [method = '', path = ''] = line.split(' ')
  return { method, path }
}

const json = 'application/json'
const malformed: [what: string, body?: Body, type?: string][] = [
  ['no body'],
  ['no JSON', '{"name"', json],
  ['empty JSON', '', json],
  ['a list', []],
  ['null', 'null', json],
  ['a text', '"text"', json],
  ['no content type', '{}'],
  ['another content type', '{}', 'text/plain'],
  ['a form', 'a=b', 'application/x-www-form-urlencoded'],
  ['JSON with a charset', '{"unknown":true}', 'application/json; charset=utf-8'],
  ['too large', `"${'x'.repeat(256 * 1024)}"`, json],
]

const shownInReference = new Set(Object.values(exampleNames))

function requestOf(
  { name, body }: Named,
  mask: (text: string) => string,
): Pick<Recorded, 'request'> {
  const isJson = typeof body === 'object' && !(body instanceof Uint8Array)
  return isJson && shownInReference.has(name)
    ? { request: JSON.parse(mask(JSON.stringify(body))) }
    : {}
}

interface Masking {
  compared: Compared
  mask: (text: string) => string
}

function headersOf(answer: Answer, masking: Masking & { method: string }): string[] {
  const { rawHeaders } = answer
  const shown: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2)
    shown.push(`${name}: ${headerValue(answer, { name: name.toLowerCase(), value, ...masking })}`)
  }
  return shown
}

interface Header extends Masking {
  name: string
  value: string
  method: string
}

function headerValue(
  { status, body }: Answer,
  { name, value, compared, mask, method }: Header,
): string {
  if (name === 'content-length') {
    return method === 'HEAD' || Number(value) === body.length
      ? '<length>'
      : `${value}, of ${body.length}`
  }
  if (name === 'etag' && compared !== 'all') return '<etag>'
  if (name === 'retry-after' && (status === 429 || value !== '1')) return '<seconds>'
  return maskedHeaders[name] ?? mask(value)
}

function bodyOf({ body }: Answer, { compared, mask }: Masking): Pick<Recorded, 'json' | 'text'> {
  if (compared === 'nothing') return { text: ['<not compared>'] }
  const text = mask(body.toString('utf8'))
  const lines = text.split('\n')
  if (compared === 'comments') return { text: lines.filter((line) => line.startsWith('#')) }
  const parsed = parse(text)
  return JSON.stringify(parsed) === text ? { json: parsed } : { text: lines }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
