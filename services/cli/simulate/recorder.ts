import { createHash } from 'node:crypto'
import { z } from 'zod'
import { parseJsonOrUndefined } from '../../../infra/text.ts'
import { errorMessage, systemCode } from '../../../infra/thrown.ts'
import type { FetchLike, FetchRequest } from '../../../infra/wire/collect/client-transport.ts'
import type { HttpClient, HttpResponse } from './http.ts'
import type { Pacer } from './pacer.ts'

export type MeasuredEndpoint = 'open' | 'batch' | 'result' | 'readback'

export interface Acknowledgement {
  kind: 'batch' | 'result'
  session_id: string
  document_id: string
  seq: number
  /** SHA-256 of the encrypted body, hex, as BatchReceived carries it. */
  body_hash: string
}

export interface Recording {
  /** Duration of each successful request, in milliseconds. */
  durations: Record<MeasuredEndpoint, number[]>
  /** Number of errors by endpoint and code. The endpoint `session` counts responses that the client rejected. */
  errors: Map<string, number>
  onAcknowledged: ((acknowledgement: Acknowledgement) => void) | undefined
}

export function createRecording(onAcknowledged?: Recording['onAcknowledged']): Recording {
  return {
    durations: { open: [], batch: [], result: [], readback: [] },
    errors: new Map(),
    onAcknowledged,
  }
}

export function countError(
  recording: Recording,
  endpoint: MeasuredEndpoint | 'session',
  code: string,
): void {
  const key = `${endpoint} ${code}`
  recording.errors.set(key, (recording.errors.get(key) ?? 0) + 1)
}

/** Recording and rate limiter that requests share. */
export interface PacedRecording {
  recording: Recording
  pacer: Pacer
}

const maxAttempts = 50

/**
 * Sends a request when the pacer allows it, and records its duration or error code. After a 429, or a 503 with Retry-After,
 * retries with the same bytes instead of counting an error.
 */
export async function sendRecorded(
  { recording, pacer, endpoint }: PacedRecording & { endpoint: MeasuredEndpoint },
  send: () => Promise<HttpResponse>,
): Promise<HttpResponse> {
  for (let attempt = 1; ; attempt++) {
    const { response, ms } = await sendPaced(pacer, send).catch((error) => {
      countError(recording, endpoint, systemCode(error) ?? errorMessage(error))
      throw error
    })
    if (attempt < maxAttempts && (await waitForRetry(response, pacer))) continue
    if (response.status >= 300) countError(recording, endpoint, errorCode(response))
    else recording.durations[endpoint].push(ms)
    return response
  }
}

// Waits for the Retry-After of a 503, and returns true if the request should be retried. The pacer waits after a 429.
async function waitForRetry({ status, headers }: HttpResponse, pacer: Pacer): Promise<boolean> {
  const seconds = Number(headers.get('retry-after'))
  const isOverloaded = status === 503 && seconds > 0
  if (isOverloaded) await pacer.waitForRecovery(seconds)
  return isOverloaded || status === 429
}

async function sendPaced(pacer: Pacer, send: () => Promise<HttpResponse>) {
  await pacer.waitForTurn()
  const start = performance.now()
  try {
    const response = await send()
    pacer.onResponse(response)
    return { response, ms: performance.now() - start }
  } catch (error) {
    pacer.onFailure()
    throw error
  }
}

/** Returns a `fetch` for the collect client that sends requests with sendRecorded. */
export function recordingFetch(
  { http, recording, pacer }: PacedRecording & { http: HttpClient },
  clientHeaders: Record<string, string>,
): FetchLike {
  return async (url, request) => {
    const headers = { ...clientHeaders, ...request.headers }
    const send = () => http.request(url, { method: 'POST', headers, body: request.body })
    const {
      status,
      headers: responseHeaders,
      body,
    } = await sendRecorded({ recording, pacer, endpoint: endpointOf(url) }, send)
    if (status === 200) reportAcknowledged(recording, url, request)
    const json = async () => JSON.parse(body.toString())
    return { status, headers: responseHeaders, json }
  }
}

function endpointOf(url: string): MeasuredEndpoint {
  if (url.endsWith('/batches')) return 'batch'
  return url.endsWith('/results') ? 'result' : 'open'
}

const bodyUrl = /\/sessions\/([^/]+)\/documents\/([^/]+)\/(batch|result)e?s$/
// The nonce starts with the sequence number and follows the frame's version and nonce length (docs/reference/collect-protocol.md).
const sequenceOffset = 2

function reportAcknowledged(
  { onAcknowledged }: Recording,
  url: string,
  { body }: FetchRequest,
): void {
  const [, session_id, document_id, kind] = bodyUrl.exec(url) ?? []
  if (!onAcknowledged || !session_id || !document_id) return
  onAcknowledged({
    kind: kind === 'result' ? 'result' : 'batch',
    session_id,
    document_id,
    seq: new DataView(body.buffer, body.byteOffset).getUint32(sequenceOffset),
    body_hash: createHash('sha256').update(body).digest('hex'),
  })
}

const errorSchema = z.object({ error: z.object({ code: z.string() }) })

// Falls back to the status if the response is not from Tidegate, as behind a proxy.
function errorCode({ status, body }: HttpResponse): string {
  return (
    errorSchema.safeParse(parseJsonOrUndefined(body.toString())).data?.error.code ??
    `http_${status}`
  )
}

export type LatencySummary = ReturnType<typeof summarize>

/** Returns percentiles by nearest rank, so that each is a measured value. All are 0 without measurements. */
export function summarize(durations: readonly number[]) {
  const sorted = durations.toSorted((a, b) => a - b)
  const rank = (share: number) =>
    Math.round((sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0) * 100) / 100
  return { count: sorted.length, p50: rank(0.5), p95: rank(0.95), p99: rank(0.99), max: rank(1) }
}
