import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { z } from 'zod'
import { parsedJson } from '../../../infra/text.ts'
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
  return { durations: { open: [], batch: [], result: [], readback: [] }, errors: new Map(), onAcknowledged }
}

export function countError(recording: Recording, endpoint: MeasuredEndpoint | 'session', code: string): void {
  const key = `${endpoint} ${code}`
  recording.errors.set(key, (recording.errors.get(key) ?? 0) + 1)
}

export interface Lane {
  recording: Recording
  pacer: Pacer
}

const mostTries = 50

/**
 * Sends one request in its turn and notes how long it took, and why when it failed. 429 and a 503 with Retry-After are
 * no failures: the server has taken nothing, so the same bytes are sent again when it asks for them.
 */
export async function recorded(
  { recording, pacer, endpoint }: Lane & { endpoint: MeasuredEndpoint },
  send: () => Promise<HttpAnswer>,
): Promise<HttpAnswer> {
  for (let tries = 1; ; tries++) {
    const { answer, ms } = await inTurn(pacer, send).catch((error) => {
      countError(recording, endpoint, transportCode(error))
      throw error
    })
    if (tries < mostTries && (await isToBeSentAgain(answer, pacer))) continue
    if (answer.status >= 300) countError(recording, endpoint, errorCode(answer))
    else recording.durations[endpoint].push(ms)
    return answer
  }
}

async function isToBeSentAgain({ status, headers }: HttpAnswer, pacer: Pacer): Promise<boolean> {
  if (status === 429) return true
  const seconds = Number(headers.get('retry-after'))
  if (status !== 503 || !(seconds > 0)) return false
  await pacer.overloaded(seconds)
  return true
}

async function inTurn(pacer: Pacer, send: () => Promise<HttpAnswer>) {
  await pacer.turn()
  const start = performance.now()
  const answer = await send().catch((error) => {
    pacer.lost()
    throw error
  })
  pacer.answered(answer)
  return { answer, ms: performance.now() - start }
}

export function recordingFetch({
  http,
  headers,
  ...lane
}: Lane & {
  http: HttpClient
  headers: Record<string, string>
}): FetchLike {
  return async (url, request) => {
    const { body } = request
    const send = () =>
      http.request(url, { method: 'POST', headers: { ...headers, ...request.headers }, body })
    const answer = await recorded({ ...lane, endpoint: endpointOf(url) }, send)
    if (answer.status === 200) noteAcknowledged(lane.recording, url, request)
    return {
      status: answer.status,
      headers: answer.headers,
      json: async () => JSON.parse(answer.body.toString()),
    }
  }
}

function endpointOf(url: string): MeasuredEndpoint {
  if (url.endsWith('/batches')) return 'batch'
  return url.endsWith('/results') ? 'result' : 'open'
}

const bodyUrl = /\/sessions\/([^/]+)\/documents\/([^/]+)\/(batch|result)e?s$/
// The sequence number leads the nonce, which follows the frame's version and nonce length (docs/collect-protocol.md).
const sequenceOffset = 2

function noteAcknowledged({ onAcknowledged }: Recording, url: string, { body }: FetchRequest): void {
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

// By its status where something other than Tidegate answered.
function errorCode({ status, body }: HttpAnswer): string {
  return refusal.safeParse(parsedJson(body.toString())).data?.error.code ?? `http_${status}`
}

function transportCode(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.message : String(error)
}

export interface AckFile {
  write(acknowledgement: Acknowledgement): void
  close(): Promise<void>
}

/** A file with a JSON line for each acknowledged body: what must be in the log whatever happens to the server. */
export function openAckFile(file: string): AckFile {
  const stream = createWriteStream(file)
  return {
    write: (acknowledgement) => void stream.write(`${JSON.stringify(acknowledgement)}\n`),
    async close() {
      stream.end()
      await finished(stream)
    },
  }
}

export interface LatencySummary {
  count: number
  p50: number
  p95: number
  p99: number
  max: number
}

/** Percentiles by nearest rank: each is a value that was measured. All are 0 when nothing was. */
export function summarize(durations: readonly number[]): LatencySummary {
  const sorted = Float64Array.from(durations).sort()
  const at = (share: number) => round(sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0)
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) }
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100
}
