import { randomBytes } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { nodeClientCrypto } from '../infra/wire/collect/node-client-crypto.ts'
import {
  bodyPath,
  type DocumentAddress,
  fromBase64Url,
  headerNames,
  ivBytes,
  type OpenResponse,
  sessionsPath,
  toBase64Url,
} from '../infra/wire/collect/protocol.ts'
import { behaviorOf } from '../services/cli/simulate/generate/behavior.ts'
import { planSession, webOnlyMix } from '../services/cli/simulate/generate/plan.ts'
import { createSeededRandom } from '../services/cli/simulate/generate/random.ts'
import { type LoadAnswer, type LoadRequest, runLoad, type Sequence } from './load.ts'

export interface Target {
  baseUrl: string
  publishableKey: string
}

/** Document with encrypted batches, to be sent in order. */
export interface PreparedDocument {
  sessionId: string
  requests: LoadRequest[]
  /** Nonce for the first batch, base64url. Each response has the next one. */
  nonce: string
}

const seed = 'bench'
const { createKeyPair, deriveDocumentKeys, sealBody } = nodeClientCrypto

/** Returns the body of an open request. Any 32 bytes are an X25519 public key. */
export function openBody(index: number): Buffer {
  const { sdk, page } = planSession(seed, index, webOnlyMix)
  return Buffer.from(JSON.stringify({ clientPublicKey: toBase64Url(randomBytes(32)), sdk, page }))
}

export function openRequest(publishableKey: string, body: Buffer): LoadRequest {
  const headers = { Authorization: `Bearer ${publishableKey}`, 'Content-Type': 'application/json' }
  return { method: 'POST', path: sessionsPath, headers, body }
}

/** Opens a document and encrypts its batches: a snapshot, then behavior. */
export async function prepareDocument(
  target: Target,
  { index, batches }: { index: number; batches: number },
) {
  const keyPair = createKeyPair(randomBytes)
  const { sdk, page } = planSession(seed, index, webOnlyMix)
  const body = Buffer.from(JSON.stringify({ clientPublicKey: keyPair.publicKey, sdk, page }))
  const answer = await openOne(target, body)
  const keys = deriveDocumentKeys(keyPair, {
    address: answer,
    serverPublicKey: answer.serverPublicKey,
  })
  const requests = plaintexts(index, batches).map((plaintext, i) => {
    const input = {
      key: keys.clientToServer,
      address: answer,
      kind: 'batches',
      seq: i + 1,
    } as const
    const sealed = sealBody({ ...input, nonce: answer.nonce, iv: randomBytes(ivBytes), plaintext })
    return batchRequest(answer, {
      seq: i + 1,
      body: Buffer.from(sealed),
      publicKey: keyPair.publicKey,
      target,
    })
  })
  return { sessionId: answer.sessionId, requests, nonce: answer.nonce }
}

async function openOne({ baseUrl, publishableKey }: Target, body: Buffer): Promise<OpenResponse> {
  const answers: LoadAnswer[] = []
  const requests = [openRequest(publishableKey, body)]
  const next = (previous: LoadAnswer | undefined) => {
    if (previous) answers.push(previous)
    return requests.shift()
  }
  await runLoad(baseUrl, [{ next }])
  return JSON.parse(String(answers[0]?.body))
}

function plaintexts(index: number, batches: number): Buffer[] {
  const random = createSeededRandom(seed, 'bench', index)
  const { batches: planned, actor } = planSession(seed, index, webOnlyMix)
  const behavior = () => ({
    version: 1,
    elapsed_ms: 2000,
    behavior: behaviorOf({ actor, mobile: false, durationMs: 2000, random }),
  })
  const observations = [planned[0], ...Array.from({ length: batches - 1 }, behavior)]
  return observations.map((value) => deflateRawSync(JSON.stringify(value)))
}

interface BatchOptions {
  seq: number
  body: Buffer
  publicKey: string
  target: Target
}

function batchRequest(
  address: DocumentAddress,
  { seq, body, publicKey, target }: BatchOptions,
): LoadRequest {
  const headers = {
    Authorization: `Bearer ${target.publishableKey}`,
    'Content-Type': 'application/octet-stream',
    [headerNames.clientKey]: publicKey,
    [headerNames.batchSeq]: String(seq),
  }
  return { method: 'POST', path: bodyPath(address, 'batches'), headers, body }
}

/** Returns a sequence that sends the documents' batches in order, with the nonces of earlier responses. */
export function batchSequence(documents: readonly PreparedDocument[]): Sequence {
  const steps = documents.flatMap(({ requests, nonce }) =>
    requests.map((request, i) => ({ request, nonce: i === 0 ? nonce : undefined })),
  )
  let at = 0
  return {
    next(previous) {
      const step = steps[at++]
      if (!step) return undefined
      const nonce = step.nonce ?? JSON.parse(String(previous?.body)).nonce
      if (step.request.body) setNonce(step.request.body, nonce)
      return step.request
    },
  }
}

// The nonce follows the frame's version and its own length. It is not encrypted (docs/reference/collect-protocol.md),
// so a body can be encrypted before its nonce is known.
const nonceOffset = 2

function setNonce(body: Buffer, nonce: string): void {
  body.set(fromBase64Url(nonce), nonceOffset)
}

/** Returns a sequence of fixed requests, regardless of responses. */
export function fixedSequence(requests: readonly LoadRequest[]): Sequence {
  const rest = requests.values()
  return { next: () => rest.next().value }
}

/** Distributes the items over `count` lists, in turns. */
export function deal<T>(items: readonly T[], count: number): T[][] {
  return Array.from({ length: count }, (_, hand) => items.filter((_item, i) => i % count === hand))
}
