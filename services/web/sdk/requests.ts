import type { AsyncClientCrypto, Deflate, FetchLike } from '../../../infra/wire/collect/client.ts'
import type { Bytes } from '../../../infra/wire/collect/protocol.ts'
import type { SentObservations } from '../../../schemas/observations.ts'
import { destroyedError } from './errors.ts'
import { Compression, isRealmAttached, Response_, realmFetch } from './realm.ts'
import { storeRaw } from './stored-blocks.ts'
import { createWebCrypto } from './web-crypto.ts'

// A machine of a twentieth of the speed needs longer than its network.
const timeoutMs = 30_000
// Browsers refuse more than 64 KiB of bodies that outlive their page.
const keepaliveBytes = 60_000

export interface PageRequests {
  fetch: FetchLike
  deflate: Deflate
  crypto: AsyncClientCrypto
  /** From now on, requests must survive the page; undone when the page is visible again. */
  setLeaving(leaving: boolean): void
}

export function observations(
  parts: Pick<SentObservations, 'snapshot' | 'behavior' | 'engine_answers' | 'binding'>,
): SentObservations {
  return { version: 1, elapsed_ms: Math.round(performance.now()), ...parts }
}

/**
 * The browser's own `fetch`, bounded in time; while the page is being left, requests start at once and outlive it. With
 * the signal aborted none starts, and the answer to an earlier one is dropped.
 */
export function createPageRequests(signal: AbortSignal): PageRequests {
  const pageFetch = window.fetch.bind(window)
  let leaving = false
  return {
    // A frame that the page has removed can send nothing, and an imitated one has no fetch.
    async fetch(url, request) {
      throwIfStopped(signal)
      const response = await (isRealmAttached() && realmFetch ? realmFetch : pageFetch)(url, {
        ...request,
        keepalive: leaving && request.body.length < keepaliveBytes,
        signal: endAfter(timeoutMs),
      })
      throwIfStopped(signal)
      return response
    },
    // The platform compresses in tasks that a page on its way out never gets to.
    deflate: (bytes) =>
      leaving || !Compression ? storeRaw(bytes) : deflateRaw(bytes, Compression),
    crypto: createWebCrypto(() => leaving),
    setLeaving(value) {
      leaving = value
    },
  }
}

/** As `signal.throwIfAborted()`, which browsers of before 2022 do not have. */
export function throwIfStopped(signal: AbortSignal): void {
  if (signal.aborted) throw destroyedError()
}

// As `AbortSignal.timeout`, which browsers of before 2022 do not have.
function endAfter(ms: number): AbortSignal {
  const ending = new AbortController()
  setTimeout(() => ending.abort(), ms)
  return ending.signal
}

async function deflateRaw(bytes: Bytes, Compress: typeof CompressionStream): Promise<Bytes> {
  try {
    const { readable, writable } = new Compress('deflate-raw')
    const writer = writable.getWriter()
    const written = Promise.all([writer.write(bytes), writer.close()])
    const [deflated] = await Promise.all([new Response_(readable).arrayBuffer(), written])
    return new Uint8Array(deflated)
  } catch {
    // Chromium before 103 compresses, but not without a header.
    return storeRaw(bytes)
  }
}
