import { type CollectClient, createCollectClient } from '../../../infra/wire/collect/client.ts'
import type { SentObservations } from '../../../schemas/observations.ts'
import { answerChallenges } from './collectors/canvas.ts'
import { answerQuestions } from './collectors/questions.ts'
import { loadContinuity, storeResumeToken, storeStateId } from './continuity.ts'
import { encode, randomBytes } from './realm.ts'
import { type PageRequests, throwIfStopped, toBody } from './requests.ts'
import { shortenUrl } from './shorten-url.ts'
import type { Collection, SnapshotOptions } from './snapshot.ts'
import { yieldToPage } from './support.ts'

export interface LiveDocument {
  sessionId: string
  client: CollectClient
  fingerprintAt: number
  intervalMs: number
  /** True once pending parts have waited for one interval. */
  hasWaited: boolean
  /** Returns, once, what the next body must include: engine answers, and the complete snapshot if parts were late. */
  takePending(): Pick<SentObservations, 'snapshot' | 'engine_answers'>
  /** Resolves once late parts are collected. */
  snapshotComplete: Promise<unknown>
  /** Resolves once the state id is stored, so that the next session of this browser is recognized. */
  stateStored: Promise<void>
}

interface DocumentOptions extends Omit<SnapshotOptions, 'waitMs'> {
  endpoint: string
  publishableKey: string
  requests: PageRequests
  /** Collected once per page. A new session sends it again, with new proofs. */
  snapshot: Promise<Collection>
}

/** Opens a document, in this tab's session if it is still open, and sends the snapshot. Throws `CollectError`. */
export async function openDocument(options: DocumentOptions): Promise<LiveDocument> {
  const { publishableKey, endpoint, mode, requests, signal } = options
  throwIfStopped(signal)
  const [keyPair, { resumeToken, stateId }] = await Promise.all([
    requests.crypto.createKeyPair(randomBytes),
    loadContinuity(publishableKey),
  ])
  await yieldToPage()
  const client = createCollectClient({
    endpoint,
    publishableKey,
    fetch: requests.fetch,
    deflate: requests.deflate,
    crypto: { ...requests.crypto, createKeyPair: () => keyPair },
    random: randomBytes,
    encode,
    pause: yieldToPage,
    sdk: { name: 'tidegate-web', version: sdkVersion, platform: 'web' },
    page: { url: shortenUrl(location.href), referrer: shortenUrl(document.referrer) || null },
    ...(resumeToken ? { resumeToken } : {}),
    ...(stateId ? { continuity: stateId } : {}),
  })
  const opened = await client.open()
  throwIfStopped(signal)
  storeResumeToken(publishableKey, opened.resumeToken)
  const [collected, proofs] = await Promise.all([options.snapshot, answerChallenges(opened, mode)])
  throwIfStopped(signal)
  const ack = await client.sendBatch(toBody({ snapshot: { ...collected.snapshot, proofs } }))
  const { sessionId, continuityScope: scope } = opened
  let pending: ReturnType<LiveDocument['takePending']> = {
    ...(ack.engineQuestions.length > 0 && {
      engine_answers: await answerQuestions(ack.engineQuestions),
    }),
  }
  const stateStored = ack.fingerprint
    ? storeStateId(publishableKey, { scope, id: ack.fingerprint.state.id }, signal)
    : Promise.resolve()
  const snapshotComplete = Promise.resolve(collected.lateSnapshot).then((complete) => {
    if (complete) pending = { ...pending, snapshot: { ...complete, proofs } }
  })
  return {
    sessionId,
    client,
    fingerprintAt: ack.fingerprint?.timestamp ?? Date.now(),
    intervalMs: ack.intervalMs,
    snapshotComplete,
    stateStored,
    hasWaited: false,
    takePending() {
      const parts = pending
      pending = {}
      return parts
    },
  }
}

const sdkVersion = '0.3.0'
