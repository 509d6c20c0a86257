import { createHash } from 'node:crypto'
import { z } from 'zod'
import { parsedJson } from '../../../infra/text.ts'
import { errorMessage, systemCode } from '../../../infra/thrown.ts'
import type { FetchLike, FetchRequest } from '../../../infra/wire/collect/client-transport.ts'
import type { HttpAnswer, HttpClient } from './http.ts'
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
  /** Milliseconds of each request that was answered well. */
  durations: Record<MeasuredEndpoint, number[]>
  /** By endpoint and code: requests without a good answer, and (`session`) answers that the client refused. */
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

/** Where requests note what became of them, and the pace that they keep. */
export interface PacedRecording {
  recording: Recording
  pacer: Pacer
}

const mostTries = 50

/**
 * Sends one request in its turn and notes how long it took, and why when it failed. 429 and a 503 with Retry-After are
 * no failures: the server has taken nothing, so the same bytes are sent again when it asks for them.
 */
export async function recorded(
  { recording, pacer, endpoint }: PacedRecording & { endpoint: MeasuredEndpoint },
  send: () => Promise<HttpAnswer>,
): Promise<HttpAnswer> {
  for (let tries = 1; ; tries++) {
    const { answer, ms } = await inTurn(pacer, send).catch((error) => {
      countError(recording, endpoint, systemCode(error) ?? errorMessage(error))
      throw error
    })
    if (tries < mostTries && (await isToBeSentAgain(answer, pacer))) continue
    if (answer.status >= 300) countError(recording, endpoint, errorCode(answer))
    else recording.durations[endpoint].push(ms)
    return answer
  }
}

// Waits before what is overloaded gets the request again; the pacer holds back what was denied.
async function isToBeSentAgain({ status, headers }: HttpAnswer, pacer: Pacer): Promise<boolean> {
  const seconds = Number(headers.get('retry-after'))
  const isOverloaded = status === 503 && seconds > 0
  if (isOverloaded) await pacer.overloaded(seconds)
  return isOverloaded || status === 429
}

async function inTurn(pacer: Pacer, send: () => Promise<HttpAnswer>) {
  await pacer.turn()
  const start = performance.now()
  try {
    const answer = await send()
    pacer.answered(answer)
    return { answer, ms: performance.now() - start }
  } catch (error) {
    pacer.lost()
    throw error
  }
}

export function recordingFetch(
  { http, recording, pacer }: PacedRecording & { http: HttpClient },
  ownHeaders: Record<string, string>,
): FetchLike {
  return async (url, request) => {
    const headers = { ...ownHeaders, ...request.headers }
    const send = () => http.request(url, { method: 'POST', headers, body: request.body })
    const answer = await recorded({ recording, pacer, endpoint: endpointOf(url) }, send)
    if (answer.status === 200) noteAcknowledged(recording, url, request)
    const json = async () => JSON.parse(answer.body.toString())
    return { status: answer.status, headers: answer.headers, json }
  }
}

function endpointOf(url: string): MeasuredEndpoint {
  if (url.endsWith('/batches')) return 'batch'
  return url.endsWith('/results') ? 'result' : 'open'
}

const bodyUrl = /\/sessions\/([^/]+)\/documents\/([^/]+)\/(batch|result)e?s$/
// The sequence number leads the nonce, which follows the frame's version and nonce length (docs/reference/collect-protocol.md).
const sequenceOffset = 2

function noteAcknowledged(
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

const refusal = z.object({ error: z.object({ code: z.string() }) })

// The status stands for the code where something other than Tidegate answered.
function errorCode({ status, body }: HttpAnswer): string {
  return refusal.safeParse(parsedJson(body.toString())).data?.error.code ?? `http_${status}`
}

export type LatencySummary = ReturnType<typeof summarize>

/** Percentiles by nearest rank: each is a value that was measured. All are 0 when nothing was. */
export function summarize(durations: readonly number[]) {
  const sorted = durations.toSorted((a, b) => a - b)
  const at = (share: number) =>
    Math.round((sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0) * 100) / 100
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) }
}
