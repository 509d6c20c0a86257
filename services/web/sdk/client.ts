import type { FingerprintReady, Handoff, StartOptions, TidegateClient } from './api.ts'
import { trackBehavior } from './behavior/inputs.ts'
import { dropResumeToken } from './continuity.ts'
import type { LiveDocument } from './document.ts'
import { type ClientError, destroyedError, type Errors, requiresNewSession } from './errors.ts'
import { createPageRequests, toBody } from './requests.ts'
import { sendBatches } from './send-batches.ts'
import { member, textOrNull, waitForIdle, withTimeoutOrNull } from './support.ts'

/** A client that observes until `stop`; its calls then reject with the reason. */
export interface RunningClient extends Pick<TidegateClient, 'getSession' | 'waitForFingerprint'> {
  stop(reason: ClientError): void
}

/** Starts observing this page. Failures go to `errors`. Throws only if `fetch` is missing. */
export function createClient(
  { publishableKey, endpoint, mode, waitMs }: Required<Omit<StartOptions, 'consent'>>,
  errors: Errors,
): RunningClient {
  const stopping = new AbortController()
  const { signal } = stopping
  let stopReason = destroyedError()
  const requests = createPageRequests(signal)
  let behavior: ReturnType<typeof trackBehavior> | undefined
  // The rest of the SDK is loaded when the page is idle.
  const idlePage = waitForIdle()
  const snapshot = collect()
  let openingDocument: Promise<LiveDocument> | undefined
  const handoffs = new Map<string | undefined, Promise<Handoff>>()

  async function collect() {
    await idlePage
    const { collectSnapshot } = await import('./snapshot.ts')
    return collectSnapshot({ mode, waitMs, signal })
  }

  async function open() {
    await idlePage
    const { openDocument } = await import('./document.ts')
    return openDocument({ endpoint, publishableKey, mode, requests, snapshot, signal })
  }

  function liveDocument(): Promise<LiveDocument> {
    if (signal.aborted) return Promise.reject(stopReason)
    if (openingDocument) return openingDocument
    const opening = retryInNewSession(open)
    openingDocument = opening
    // Forget a failed attempt, so that the next call tries again.
    opening.catch(() => {
      if (openingDocument === opening) openingDocument = undefined
    })
    return opening
  }

  async function retryInNewSession<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (signal.aborted) throw stopReason
      if (!requiresNewSession(error)) throw error
      dropResumeToken(publishableKey)
      return work()
    }
  }

  /** Runs `use` on the live document. If the document has expired, retries once in a new session. */
  function withDocument<T>(use: (document: LiveDocument) => Promise<T>): Promise<T> {
    return retryInNewSession(async () => {
      const opening = liveDocument()
      const document = await opening
      if (signal.aborted) throw stopReason
      try {
        return await use(document)
      } catch (error) {
        if (requiresNewSession(error) && openingDocument === opening) openingDocument = undefined
        throw error
      }
    })
  }

  async function flush(): Promise<number> {
    const document = await liveDocument()
    const observed = behavior?.drain()
    // Pending parts alone wait for one interval, because a hand-off usually includes them.
    const pending = observed || document.hasWaited ? document.takePending() : {}
    document.hasWaited = true
    const unsent = { ...(observed ? { behavior: observed } : {}), ...pending }
    if (Object.keys(unsent).length === 0) return document.intervalMs
    const body = toBody(unsent)
    return withDocument(async (document) => {
      document.intervalMs = (await document.client.sendBatch(body)).intervalMs
      return document.intervalMs
    })
  }

  async function handOver(binding: string | undefined): Promise<Handoff> {
    const document = await liveDocument()
    await withTimeoutOrNull(waitMs, () => document.snapshotComplete)
    const { sha256Of } = await import('./hashes.ts')
    const observed = behavior?.drain()
    const body = toBody({
      ...(observed ? { behavior: observed } : {}),
      ...document.takePending(),
      ...(binding === undefined ? {} : { binding: await sha256Of(binding) }),
    })
    const handoff = withDocument((document) => document.client.requestResult(body))
    await document.stateStored
    return handoff
  }

  async function fingerprint(): Promise<FingerprintReady> {
    const { sessionId, fingerprintAt } = await withDocument(async (document) => {
      await document.stateStored
      return document
    })
    return { ready: true, sessionId, timestamp: fingerprintAt }
  }

  // Runs in a new task, because the one that loaded this module has already opened a frame.
  setTimeout(() => {
    if (signal.aborted) return
    behavior = trackBehavior(signal)
    setTimeout(() => sendBatches({ flush, requests, report: errors.report, signal }))
  })

  return {
    getSession(options) {
      const binding = textOrNull(member(options, 'binding')) ?? undefined
      const pending = handoffs.get(binding)
      if (pending) return pending
      const handoff = errors.watch(handOver(binding)).finally(() => handoffs.delete(binding))
      handoffs.set(binding, handoff)
      return handoff
    },
    waitForFingerprint: () => errors.watch(fingerprint()),
    stop(reason) {
      stopReason = reason
      stopping.abort()
    },
  }
}
