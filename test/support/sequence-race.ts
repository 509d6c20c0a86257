import { createHash, randomBytes } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import {
  createKeyPair,
  deriveDocumentKeys,
  sealBody,
} from '../../infra/wire/collect/client-crypto.ts'
import {
  type BodyKind,
  bodyPath,
  ivBytes,
  type OpenResponse,
  sessionsPath,
} from '../../infra/wire/collect/protocol.ts'

export interface RawRequest {
  path: string
  headers: Record<string, string>
  payload: Buffer | string
}

export interface RawAnswer<Json = { nonce?: string; error?: { code: string } }> {
  status: number
  json: Json
}

/** Sends a request to a process. */
export type Post = (request: RawRequest) => Promise<RawAnswer>

export function postTo(baseUrl: string): Post {
  return async ({ path, headers, payload }) => {
    const body = typeof payload === 'string' ? payload : new Uint8Array(payload)
    const response = await fetch(`${baseUrl}${path}`, { method: 'POST', headers, body })
    const json: RawAnswer['json'] = JSON.parse(await response.text())
    return { status: response.status, json }
  }
}

export const outcomeOf = ({ status, json }: RawAnswer): string =>
  json.error ? `${status} ${json.error.code}` : String(status)

export const hashOf = ({ payload }: RawRequest): string =>
  createHash('sha256').update(payload).digest('hex')

/** Document whose bodies are made by the test, also with repeated sequence numbers. */
export interface RawDocument {
  sessionId: string
  /** Nonce for the first body. */
  nonce: string
  /** Returns the request for a body, by default a batch. */
  body(seq: number, nonce: string, kind?: BodyKind): RawRequest
}

export async function openRawDocument(post: Post, publishableKey: string): Promise<RawDocument> {
  const keyPair = createKeyPair(randomBytes)
  const authorization = `Bearer ${publishableKey}`
  const sdk = { name: 'raw', version: '1', platform: 'web' }
  const opened = await post({
    path: sessionsPath,
    headers: { authorization, 'content-type': 'application/json' },
    payload: JSON.stringify({
      clientPublicKey: keyPair.publicKey,
      sdk,
      page: { url: 'https://shop.example/' },
    }),
  })
  const answer: OpenResponse = JSON.parse(JSON.stringify(opened.json))
  const keys = deriveDocumentKeys(keyPair, {
    address: answer,
    serverPublicKey: answer.serverPublicKey,
  })
  return {
    sessionId: answer.sessionId,
    nonce: answer.nonce,
    body(seq, nonce, kind = 'batches') {
      const plaintext = deflateRawSync(JSON.stringify({ version: 1, elapsed_ms: seq }))
      const input = { key: keys.clientToServer, address: answer, kind, seq, nonce }
      return {
        path: bodyPath(answer, kind),
        headers: {
          authorization,
          'content-type': 'application/octet-stream',
          'x-client-key': keyPair.publicKey,
          'x-batch-seq': String(seq),
        },
        payload: Buffer.from(sealBody({ ...input, iv: randomBytes(ivBytes), plaintext })),
      }
    },
  }
}

/** Outcomes of bodies that were sent concurrently with the same sequence number. */
export interface Raced {
  /** Number of requests by outcome. */
  outcomes: Record<string, number>
  taken: { request: RawRequest; answer: RawAnswer }[]
}

/** Sends the bodies concurrently, each to the next process. A missing response counts as `none`. */
export async function raceBodies(requests: RawRequest[], posts: Post[]): Promise<Raced> {
  const answers = await Promise.all(
    requests.map((request, i) => posts[i % posts.length]?.(request).catch(() => undefined)),
  )
  const outcomes: Record<string, number> = {}
  const taken: Raced['taken'] = []
  answers.forEach((answer, i) => {
    const outcome = answer ? outcomeOf(answer) : 'none'
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
    const request = requests[i]
    if (answer?.status === 200 && request) taken.push({ request, answer })
  })
  return { outcomes, taken }
}

/** Returns eight different bodies with the same sequence number. */
export function eightBodies(document: RawDocument, seq: number, nonce: string): RawRequest[] {
  return Array.from({ length: 8 }, () => document.body(seq, nonce))
}

export const oneOfEight = { '200': 1, '409 session.sequence_mismatch': 7 }
