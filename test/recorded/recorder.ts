import { type Answer, headerOf, type Request, send, sendRaw } from './http.ts'
import type { Mask } from './mask.ts'

/** An answer with everything masked that differs from run to run. */
export interface Recorded {
  name: string
  method: string
  path: string
  status: number
  /** `Name: value`, in the order in which they came. */
  headers: string[]
  /** JSON that is written as JSON.stringify writes it; then `text` is absent. */
  json?: unknown
  /** Any other body, by line. */
  text?: string[]
}

/** What is compared of a body; default: all of it. */
export type Compared = 'all' | 'comments' | 'nothing'

export interface Named extends Request {
  name: string
  compared?: Compared
}

/** Headers that say when and where, and those whose value follows from what happened before within a minute. */
const maskedHeaders: Record<string, string> = {
  date: '<date>',
  // Of a file of a package: when it was installed.
  'last-modified': '<date>',
  'x-ratelimit-remaining': '<remaining>',
}

/** Sends requests and keeps what was answered. */
export function createRecorder({ baseUrl, mask: maskFully }: { baseUrl: string; mask: Mask }) {
  const recorded: Recorded[] = []
  const names = new Set<string>()

  function keep({ name, method, path, compared = 'all' }: Named, answer: Answer): Answer {
    if (names.has(name)) throw new Error(`two requests are called "${name}"`)
    names.add(name)
    const now = Date.now()
    const requestId = headerOf(answer, 'x-request-id') ?? ''
    const mask = (text: string) =>
      maskFully(requestId === '' ? text : text.replaceAll(requestId, '<request>'), now)
    // The path first: what a client names comes before what it is answered.
    const shownPath = mask(path)
    const headers = headersOf(answer, { compared, mask, method })
    recorded.push({
      name,
      method,
      path: shownPath,
      status: answer.status,
      headers,
      ...bodyOf(answer, { compared, mask }),
    })
    return answer
  }

  return {
    recorded,
    /** Sends a request and keeps its answer. */
    record: async (request: Named): Promise<Answer> => keep(request, await send(baseUrl, request)),
    recordRaw: async (name: string, raw: string): Promise<Answer> => {
      const [method = '', path = ''] = raw.split('\r\n', 1)[0]?.split(' ') ?? []
      return keep({ name, method, path: path.slice(0, 100) }, await sendRaw(baseUrl, raw))
    },
    /** Sends a request whose answer is not compared, as one that is repeated until something has happened. */
    quiet: (request: Request): Promise<Answer> => send(baseUrl, request),
  }
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
