import { createHash } from 'node:crypto'
import { z } from 'zod'
import { parsedJson } from '../../../infra/text.ts'
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
  /** Milliseconds of each successful request. */
  durations: Record<MeasuredEndpoint, number[]>
  /** By endpoint and code: failed requests and, as endpoint `session`, responses that the client rejected. */
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

/** The recording that requests are counted in, and the rate limiter they share. */
export interface PacedRecording {
  recording: Recording
  pacer: Pacer
}

const maxTries = 50

/**
 * Sends one request when the pacer allows it, and records its duration or error code. Retries the same bytes after a 429
 * or a 503 with Retry-After, which are not counted as errors: the server has accepted nothing.
 */
export async function sendRecorded(
  { recording, pacer, endpoint }: PacedRecording & { endpoint: MeasuredEndpoint },
  send: () => Promise<HttpResponse>,
): Promise<HttpResponse> {
  for (let tries = 1; ; tries++) {
    const { response, ms } = await sendPaced(pacer, send).catch((error) => {
      countError(recording, endpoint, systemCode(error) ?? errorMessage(error))
      throw error
    })
    if (tries < maxTries && (await waitForRetry(response, pacer))) continue
    if (response.status >= 300) countError(recording, endpoint, errorCode(response))
    else recording.durations[endpoint].push(ms)
    return response
  }
}

// Returns true if the request must be retried, after the Retry-After of a 503. The pacer delays the retry after a 429.
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
  return errorSchema.safeParse(parsedJson(body.toString())).data?.error.code ?? `http_${status}`
}

export type LatencySummary = ReturnType<typeof summarize>

/** Returns percentiles by nearest rank, so each is a measured value; all are 0 if there are no measurements. */
export function summarize(durations: readonly number[]) {
  const sorted = durations.toSorted((a, b) => a - b)
  const at = (share: number) =>
    Math.round((sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0) * 100) / 100
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) }
}
