import { type CollectClient, createCollectClient } from '../../../infra/wire/collect/client.ts'
import type { SentObservations } from '../../../schemas/observations.ts'
import { answerChallenges } from './collectors/canvas.ts'
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
  /** The whole snapshot, where parts of it were late. It is returned once; undefined before it is there and after. */
  takeLate(): SentObservations['snapshot']
  /** Resolves once the whole snapshot is there. */
  whole: Promise<unknown>
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
  const { resumeToken, stateId } = await loadContinuity(publishableKey)
  await yieldToPage()
  const client = createCollectClient({
    endpoint,
    publishableKey,
    fetch: requests.fetch,
    deflate: requests.deflate,
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
  const collected = await options.snapshot
  throwIfStopped(signal)
  const proofs = await answerChallenges(opened, mode)
  await yieldToPage()
  const ack = await client.sendBatch(observations({ snapshot: { ...collected.snapshot, proofs } }))
  const { sessionId, continuityScope: scope } = opened
  if (ack.fingerprint) await storeStateId(publishableKey, { scope, id: ack.fingerprint.state.id }, signal)
  let late: SentObservations['snapshot']
  const whole = Promise.resolve(collected.whole).then((all) => {
    if (all) late = { ...all, proofs }
  })
  return {
    sessionId,
    client,
    fingerprintAt: ack.fingerprint?.timestamp ?? Date.now(),
    intervalMs: ack.intervalMs,
    whole,
    takeLate() {
      const taken = late
      late = undefined
      return taken
    },
  }
}

const sdkVersion = '0.3.0'
