import { parsedJson } from '../../../infra/text.ts'
import { errorMessage } from '../../../infra/thrown.ts'
import { wire } from '../../../infra/wire/names.ts'
import { standardHeaders, verifySignature } from '../../../infra/wire/webhooks/signature.ts'
import type { LoopbackAnswer, LoopbackRequest } from '../loopback-server.ts'

const timeoutMs = 15_000
// These belong to one connection, or are set by whoever sends (RFC 9110, section 7.6.1).
const notForwarded = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'keep-alive',
  'expect',
]

/** Posts the request on, byte for byte and with its signatures, and answers what `url` answered; 502 when nothing. */
export async function forward(
  { headers, body }: LoopbackRequest,
  url: string,
): Promise<LoopbackAnswer> {
  const passedOn = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' && !notForwarded.includes(name) ? [[name, value]] : [],
  )
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const response = await fetch(url, {
      method: 'POST',
      headers: passedOn,
      body,
      signal,
      redirect: 'manual',
    })
    return { status: response.status, body: await response.text() }
  } catch (error) {
    return { status: 502, body: errorMessage(error) }
  }
}

interface Inspection {
  received_at: string
  event_id: string | null
  type: string | null
  /** How often this event came since the start: 2 and above are retries or repetitions. */
  times_seen: number
  /** For the header of each form of signature: 'valid', or what is wrong. */
  signatures: Record<string, string>
  payload: unknown
}

const plain = [wire.webhookTimestampHeader, wire.webhookSignatureHeader]
const standard = Object.values(standardHeaders)

/** Verifies each form of signature by itself, as receivers of only that form would. */
export function inspect(
  { headers, body }: LoopbackRequest,
  { secrets, now, seen }: { secrets: string[]; now: number; seen: Map<string, number> },
): Inspection {
  const formOf = (names: string[]) => {
    const own = Object.fromEntries(names.map((name) => [name, headers[name.toLowerCase()]]))
    const result = verifySignature({ headers: own, body, secrets, now })
    return result.valid ? 'valid' : result.problem
  }
  const json = parsedJson(body)
  const payload = json === undefined ? body : json
  const eventId = memberOf(payload, 'id')
  const times = (seen.get(eventId ?? '') ?? 0) + 1
  if (eventId !== null) seen.set(eventId, times)
  return {
    received_at: new Date(now).toISOString(),
    event_id: eventId,
    type: memberOf(payload, 'type'),
    times_seen: times,
    signatures: {
      [standardHeaders.signature]: formOf(standard),
      [wire.webhookSignatureHeader]: formOf(plain),
    },
    payload,
  }
}

export function isGenuine({ signatures }: Inspection): boolean {
  return Object.values(signatures).includes('valid')
}

function memberOf(payload: unknown, name: 'id' | 'type'): string | null {
  if (typeof payload !== 'object' || payload === null) return null
  const value: unknown = Object.entries(payload).find(([key]) => key === name)?.[1]
  return typeof value === 'string' ? value : null
}

export function inspectionText(inspection: Inspection, answered: number): string {
  const { received_at, type, event_id, times_seen, signatures, payload } = inspection
  const again = times_seen > 1 ? `, time ${times_seen}` : ''
  const forms = Object.entries(signatures).map(([header, result]) => `  ${header}: ${result}`)
  return [
    `${received_at}  ${type ?? 'no type'}  ${event_id ?? 'no event id'}${again}  answered ${answered}`,
    ...forms,
    JSON.stringify(payload, null, 2).replace(/^/gm, '  '),
    '',
  ].join('\n')
}
