import { parseJsonOrUndefined } from '../../../infra/text.ts'
import { errorMessage } from '../../../infra/thrown.ts'
import { wireNames } from '../../../infra/wire/names.ts'
import { standardHeaders, verifySignature } from '../../../infra/wire/webhooks/signature.ts'
import type { LoopbackRequest, LoopbackResponse } from '../loopback-server.ts'

const timeoutMs = 15_000
// Headers that apply to a single connection (RFC 9110, section 7.6.1) or are set by fetch.
const notForwarded = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'keep-alive',
  'expect',
]

/** Forwards the request with its signatures, and returns the response of `url`, or 502 if it doesn't respond. */
export async function forwardDelivery(
  { headers, body }: LoopbackRequest,
  url: string,
): Promise<LoopbackResponse> {
  const forwardedHeaders = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' && !notForwarded.includes(name) ? [[name, value]] : [],
  )
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const response = await fetch(url, {
      method: 'POST',
      headers: forwardedHeaders,
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
  /** Number of times the event has arrived since the start; above 1 for retries and redeliveries. */
  times_seen: number
  /** Result by signature header: 'valid' or the problem. */
  signatures: Record<string, string>
  payload: unknown
}

const nativeHeaders = [wireNames.webhookTimestampHeader, wireNames.webhookSignatureHeader]
const standardHeaderNames = Object.values(standardHeaders)

/** Counts the delivery in `timesSeen`, and verifies each signature scheme as if it were the only one. */
export function inspectDelivery(
  { headers, body }: LoopbackRequest,
  { secrets, now, timesSeen }: { secrets: string[]; now: number; timesSeen: Map<string, number> },
): Inspection {
  const verify = (names: string[]) => {
    const schemeHeaders = Object.fromEntries(
      names.map((name) => [name, headers[name.toLowerCase()]]),
    )
    const result = verifySignature({ headers: schemeHeaders, body, secrets, now })
    return result.valid ? 'valid' : result.problem
  }
  const json = parseJsonOrUndefined(body)
  const payload = json === undefined ? body : json
  const eventId = memberOf(payload, 'id')
  const times = (timesSeen.get(eventId ?? '') ?? 0) + 1
  if (eventId !== null) timesSeen.set(eventId, times)
  return {
    received_at: new Date(now).toISOString(),
    event_id: eventId,
    type: memberOf(payload, 'type'),
    times_seen: times,
    signatures: {
      [standardHeaders.signature]: verify(standardHeaderNames),
      [wireNames.webhookSignatureHeader]: verify(nativeHeaders),
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

export function inspectionText(inspection: Inspection, status: number): string {
  const { received_at, type, event_id, times_seen, signatures, payload } = inspection
  const repeat = times_seen > 1 ? `, seen ${times_seen} times` : ''
  const results = Object.entries(signatures).map(([header, result]) => `  ${header}: ${result}`)
  return [
    `${received_at}  ${type ?? 'no type'}  ${event_id ?? 'no event id'}${repeat}  responded ${status}`,
    ...results,
    JSON.stringify(payload, null, 2).replace(/^/gm, '  '),
    '',
  ].join('\n')
}
