import type { AsyncClientCrypto, Deflate, FetchLike } from '../../../infra/wire/collect/client.ts'
import type { Bytes } from '../../../infra/wire/collect/protocol.ts'
import type { SentObservations } from '../../../schemas/observations.ts'
import { destroyedError } from './errors.ts'
import { Compression, isRealmAttached, Response_, realmFetch } from './realm.ts'
import { toStoredBlocks } from './stored-blocks.ts'
import { createWebCrypto } from './web-crypto.ts'

// Generous, because on a very slow machine the CPU takes longer than the network.
const timeoutMs = 30_000
// Browsers limit keepalive bodies to 64 KiB in total.
const keepaliveBytes = 60_000

export interface PageRequests {
  fetch: FetchLike
  deflate: Deflate
  crypto: AsyncClientCrypto
  /** Pass true while the page is being left, so that requests outlive it. */
  setLeaving(isLeaving: boolean): void
}

export function toBody(
  parts: Pick<SentObservations, 'snapshot' | 'behavior' | 'engine_answers' | 'binding'>,
): SentObservations {
  return { version: 1, elapsed_ms: Math.round(performance.now()), ...parts }
}

/**
 * Returns the clean realm's `fetch` with a timeout, and compression and crypto for bodies. While the page is being
 * left, requests start at once and outlive it. After an abort, none starts, and pending responses are dropped.
 */
export function createPageRequests(signal: AbortSignal): PageRequests {
  const pageFetch = window.fetch.bind(window)
  let isLeaving = false
  return {
    // Falls back to the page's fetch, because a removed frame cannot send, and an emulated one has no fetch.
    async fetch(url, request) {
      throwIfStopped(signal)
      const response = await (isRealmAttached() && realmFetch ? realmFetch : pageFetch)(url, {
        ...request,
        keepalive: isLeaving && request.body.length < keepaliveBytes,
        signal: abortAfter(timeoutMs),
      })
      throwIfStopped(signal)
      return response
    },
    // Native compression is asynchronous, and may not finish before the page is gone.
    deflate: (bytes) =>
      isLeaving || !Compression ? toStoredBlocks(bytes) : deflateRaw(bytes, Compression),
    crypto: createWebCrypto(() => isLeaving),
    setLeaving(value) {
      isLeaving = value
    },
  }
}

/** Throws if the signal is aborted. Like `signal.throwIfAborted()`, which browsers before 2022 lack. */
export function throwIfStopped(signal: AbortSignal): void {
  if (signal.aborted) throw destroyedError()
}

// Like `AbortSignal.timeout`, which browsers before 2022 lack.
function abortAfter(ms: number): AbortSignal {
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
    // Chromium before 103 does not support `deflate-raw`.
    return toStoredBlocks(bytes)
  }
}
