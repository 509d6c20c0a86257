import type { Answer, Received } from './receiver.ts'

const timeoutMs = 15_000
/** Of one connection, or set by whoever sends. RFC 9110, section 7.6.1 */
const notForwarded = ['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'expect']

/** Posts the request on, byte for byte and with its signatures, and answers what `url` answered; 502 when nothing. */
export async function forward({ headers, body }: Received, url: string): Promise<Answer> {
  const kept = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' && !notForwarded.includes(name) ? [[name, value]] : [],
  )
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const response = await fetch(url, { method: 'POST', headers: kept, body, signal, redirect: 'manual' })
    return { status: response.status, body: await response.text() }
  } catch (error) {
    return { status: 502, body: error instanceof Error ? error.message : String(error) }
  }
}
