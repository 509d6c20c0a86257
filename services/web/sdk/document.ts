import { type CollectClient, createCollectClient } from '../../../infra/wire/collect/client.ts'
import type { SentObservations } from '../../../schemas/observations.ts'
import { answerChallenges } from './collectors/canvas.ts'
import { answerQuestions } from './collectors/questions.ts'
import { loadContinuity, storeResumeToken, storeStateId } from './continuity.ts'
import { sentAddress } from './page-address.ts'
import { encode, randomBytes } from './realm.ts'
import { observations, type PageRequests, throwIfStopped } from './requests.ts'
import type { Collection, SnapshotOptions } from './snapshot.ts'
import { yieldToPage } from './support.ts'

export interface LiveDocument {
  sessionId: string
  client: CollectClient
  fingerprintAt: number
  intervalMs: number
  /** True once late parts have waited for one interval. */
  hasWaited: boolean
  /**
   * Returns, once, what the next body must include: answers to follow-up questions, and the whole snapshot if parts
   * were late.
   */
  takeLate(): Pick<SentObservations, 'snapshot' | 'engine_answers'>
  /** Resolves once the snapshot is complete. */
  whole: Promise<unknown>
  /** Resolves once the next session of this browser can be recognized. */
  stored: Promise<void>
}

interface DocumentOptions extends Omit<SnapshotOptions, 'waitMs'> {
  endpoint: string
  publishableKey: string
  requests: PageRequests
  /** Collected once per page; a new session sends it again with fresh proofs. */
  snapshot: Promise<Collection>
}

/** Opens a document, in this tab's session if that is still open, and delivers the snapshot. Throws CollectError. */
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
    page: { url: sentAddress(location.href), referrer: sentAddress(document.referrer) || null },
    ...(resumeToken ? { resumeToken } : {}),
    ...(stateId ? { continuity: stateId } : {}),
  })
  const opened = await client.open()
  throwIfStopped(signal)
  storeResumeToken(publishableKey, opened.resumeToken)
  const [collected, proofs] = await Promise.all([options.snapshot, answerChallenges(opened, mode)])
  throwIfStopped(signal)
  const ack = await client.sendBatch(observations({ snapshot: { ...collected.snapshot, proofs } }))
  const { sessionId, continuityScope: scope } = opened
  let late: ReturnType<LiveDocument['takeLate']> = {
    ...(ack.engineQuestions.length > 0 && {
      engine_answers: await answerQuestions(ack.engineQuestions),
    }),
  }
  const stored = ack.fingerprint
    ? storeStateId(publishableKey, { scope, id: ack.fingerprint.state.id }, signal)
    : Promise.resolve()
  const whole = Promise.resolve(collected.whole).then((complete) => {
    if (complete) late = { ...late, snapshot: { ...complete, proofs } }
  })
  return {
    sessionId,
    client,
    fingerprintAt: ack.fingerprint?.timestamp ?? Date.now(),
    intervalMs: ack.intervalMs,
    whole,
    stored,
    hasWaited: false,
    takeLate() {
      const parts = late
      late = {}
      return parts
    },
  }
}

const sdkVersion = '0.3.0'
