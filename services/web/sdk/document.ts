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
  /** An interval has passed in which what is late could have gone with something else. */
  hasWaited: boolean
  /** Goes with the next body, once: answers that were asked for later, and the whole snapshot where parts were late. */
  takeLate(): Pick<SentObservations, 'snapshot' | 'engine_answers'>
  /** Resolves once the whole snapshot is there. */
  whole: Promise<unknown>
  /** Resolves once the next session of this browser can be recognized. */
  stored: Promise<void>
}

interface DocumentOptions extends Omit<SnapshotOptions, 'waitMs'> {
  endpoint: string
  publishableKey: string
  requests: PageRequests
  /** Collected once for each page; a restarted session sends it again with fresh proofs. */
  snapshot: Promise<Collection>
}

/** Opens a document (of this tab's session while that lasts) and delivers the snapshot. Throws CollectError. */
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
  const whole = Promise.resolve(collected.whole).then((all) => {
    if (all) late = { ...late, snapshot: { ...all, proofs } }
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
      const taken = late
      late = {}
      return taken
    },
  }
}

const sdkVersion = '0.3.0'
