import type { SentObservations } from '../../../schemas/observations.ts'
import { createBodySender, type Deflate, deflateRaw } from './client-bodies.ts'
import { type ClientRandom, createKeyPair, deriveDocumentKeys } from './client-crypto.ts'
import { createTransport, type FetchLike, type RetryOptions } from './client-transport.ts'
import { sessionsPath } from './constants.ts'
import type { Fingerprint, OpenRequest, OpenResponse, PageInfo, SdkInfo } from './messages.ts'

export { CollectError, type FetchLike, type RetryOptions } from './client-transport.ts'
export type { CanvasChallenge, CanvasOp, Fingerprint, OpenResponse } from './messages.ts'

export interface CollectClientOptions {
  /** Base URL of the server, without `/v2/collect`. */
  endpoint: string
  publishableKey: string
  fetch: FetchLike
  /** Default: crypto.getRandomValues. */
  random?: ClientRandom
  sdk: SdkInfo
  /** Required when `sdk.platform` is `web`. */
  page?: PageInfo
  /** Of an earlier document of the same session: the new document joins it while the session lasts. */
  resumeToken?: string
  /** `fingerprint.state.id` of an earlier visit, kept under the session's `continuityScope`. */
  continuity?: string
  /** Further request headers, for clients that are not browsers (a browser sets its own Origin). */
  headers?: Record<string, string>
  retry?: RetryOptions
  /** Replaces the platform's compression, which a page that is being left has no time to wait for. */
  deflate?: Deflate
}

/** What an SDK needs from the open answer; keys and nonces stay inside the client. */
export type OpenedSession = Omit<OpenResponse, 'serverPublicKey' | 'nonce' | 'sharedPostVersion'>

export interface BatchAck {
  seq: number
  /** Milliseconds until the next batch is wanted. */
  intervalMs: number
  /** With the document's first batch only. */
  fingerprint?: Fingerprint
}

export interface Handoff {
  sessionId: string
  sealedToken: string
}

/**
 * One document of a collect session. Bodies go out one at a time, in the order of the calls; a lost answer is
 * asked for again with the same bytes, if need be before the next body, so observations that were passed in once
 * are not passed in again. Every method rejects with a CollectError; after one whose `nextAction` is `new_session`
 * make a new client.
 */
export interface CollectClient {
  /** Call once, before anything else. */
  open(): Promise<OpenedSession>
  /** The first batch of a document must carry the snapshot. */
  sendBatch(observations: SentObservations): Promise<BatchAck>
  /** Sends what was observed since the last batch and asks for the sealed token. */
  requestResult(observations: SentObservations): Promise<Handoff>
}

const systemRandom: ClientRandom = (size) => crypto.getRandomValues(new Uint8Array(size))

export function createCollectClient(options: CollectClientOptions): CollectClient {
  const random = options.random ?? systemRandom
  const transport = createTransport(options)
  let opening: Promise<{ session: OpenedSession; sender: ReturnType<typeof createBodySender> }> | undefined

  async function openDocument() {
    const keyPair = createKeyPair(random)
    const answer: OpenResponse = await transport.postJson(
      sessionsPath,
      openRequest(options, keyPair.publicKey),
    )
    const { serverPublicKey, nonce, sharedPostVersion: _, ...session } = answer
    const keys = deriveDocumentKeys(keyPair, { address: session, serverPublicKey })
    const sender = createBodySender({
      transport,
      random,
      deflate: options.deflate ?? deflateRaw,
      document: { address: session, keys, publicKey: keyPair.publicKey, nonce },
    })
    return { session, sender }
  }

  async function sender() {
    if (!opening) throw new Error('open() comes first')
    return (await opening).sender
  }

  return {
    async open() {
      opening ??= openDocument()
      return (await opening).session
    },
    sendBatch: async (observations) => (await sender()).sendBatch(observations),
    requestResult: async (observations) => (await sender()).requestResult(observations),
  }
}

function openRequest(options: CollectClientOptions, clientPublicKey: string): OpenRequest {
  const { sdk, page, resumeToken, continuity } = options
  return {
    clientPublicKey,
    sdk,
    ...(page ? { page } : {}),
    ...(resumeToken ? { resumeToken } : {}),
    ...(continuity ? { continuity } : {}),
  }
}
