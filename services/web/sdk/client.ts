import type { FingerprintReady, Handoff, StartOptions, TidegateClient } from './api.ts'
import { trackBehavior } from './behavior/inputs.ts'
import { dropResumeToken } from './continuity.ts'
import type { LiveDocument } from './document.ts'
import { type ClientError, destroyedError, type Errors, endsDocument } from './errors.ts'
import { followPage } from './page.ts'
import { createPageRequests, observations } from './requests.ts'
import { idle, member, textOf, withinBudget } from './support.ts'

/** Observes until it is stopped; its calls then reject with the reason. */
export interface RunningClient extends Pick<TidegateClient, 'getSession' | 'waitForFingerprint'> {
  stop(reason: ClientError): void
}

/** Observes this page in a collect session of its own; failures go to `errors`. Throws only where there is no fetch. */
export function createClient(
  { publishableKey, endpoint, mode, waitMs }: Required<Omit<StartOptions, 'consent'>>,
  errors: Errors,
): RunningClient {
  const stopping = new AbortController()
  const { signal } = stopping
  let stopped = destroyedError()
  const requests = createPageRequests(signal)
  let behavior: ReturnType<typeof trackBehavior> | undefined
  // Code that is not needed at once is loaded later, in a moment without work.
  const quiet = idle()
  const snapshot = collect()
  let current: Promise<LiveDocument> | undefined
  const handoffs = new Map<string | undefined, Promise<Handoff>>()

  async function collect() {
    await quiet
    const { collectSnapshot } = await import('./snapshot.ts')
    return collectSnapshot({ mode, waitMs, signal })
  }

  async function open() {
    await quiet
    const { openDocument } = await import('./document.ts')
    return openDocument({ endpoint, publishableKey, mode, requests, snapshot, signal })
  }

  function live(): Promise<LiveDocument> {
    if (signal.aborted) return Promise.reject(stopped)
    if (current) return current
    const opening = restartOnce(open)
    current = opening
    // A failed opening is not remembered: the next use tries again.
    opening.catch(() => {
      if (current === opening) current = undefined
    })
    return opening
  }

  async function restartOnce<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (signal.aborted) throw stopped
      if (!endsDocument(error)) throw error
      dropResumeToken(publishableKey)
      return work()
    }
  }

  /** Runs `use` on the live document; when that turns out to be over, once more on a new session's. */
  function withDocument<T>(use: (document: LiveDocument) => Promise<T>): Promise<T> {
    return restartOnce(async () => {
      const opening = live()
      const document = await opening
      if (signal.aborted) throw stopped
      try {
        return await use(document)
      } catch (error) {
        if (endsDocument(error) && current === opening) current = undefined
        throw error
      }
    })
  }

  async function flush(): Promise<number> {
    const document = await live()
    const seen = behavior?.drain()
    // Alone, what was late waits for one interval, because a hand-off usually takes it along.
    const late = seen || document.hasWaited ? document.takeLate() : {}
    document.hasWaited = true
    const unsent = { ...(seen ? { behavior: seen } : {}), ...late }
    if (Object.keys(unsent).length === 0) return document.intervalMs
    const body = observations(unsent)
    return withDocument(async (document) => {
      document.intervalMs = (await document.client.sendBatch(body)).intervalMs
      return document.intervalMs
    })
  }

  async function handOver(binding: string | undefined): Promise<Handoff> {
    const document = await live()
    await withinBudget(waitMs, () => document.whole)
    const { sha256Of } = await import('./hashes.ts')
    const seen = behavior?.drain()
    const body = observations({
      ...(seen ? { behavior: seen } : {}),
      ...document.takeLate(),
      ...(binding === undefined ? {} : { binding: await sha256Of(binding) }),
    })
    const handoff = withDocument((document) => document.client.requestResult(body))
    await document.stored
    return handoff
  }

  async function fingerprint(): Promise<FingerprintReady> {
    const { sessionId, fingerprintAt } = await withDocument(async (document) => {
      await document.stored
      return document
    })
    return { ready: true, sessionId, timestamp: fingerprintAt }
  }

  // The task that loaded this module has opened a frame, which is work enough for one.
  setTimeout(() => {
    if (signal.aborted) return
    behavior = trackBehavior(signal)
    setTimeout(() => followPage({ flush, requests, report: errors.report, signal }))
  })

  return {
    getSession(options) {
      const binding = textOf(member(options, 'binding')) ?? undefined
      const known = handoffs.get(binding)
      if (known) return known
      const handoff = errors.watch(handOver(binding)).finally(() => handoffs.delete(binding))
      handoffs.set(binding, handoff)
      return handoff
    },
    waitForFingerprint: () => errors.watch(fingerprint()),
    stop(reason) {
      stopped = reason
      stopping.abort()
    },
  }
}
