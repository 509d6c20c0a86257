import { type Deflate, deflateRaw, type FetchLike } from '../../../infra/wire/collect/client.ts'
import type { Bytes } from '../../../infra/wire/collect/protocol.ts'

const timeoutMs = 15_000
/** Browsers refuse more than 64 KiB of bodies that outlive their page. */
const keepaliveBytes = 60_000
/** Largest stored deflate block (RFC 1951, section 3.2.4). */
const storedBytes = 0xffff

export interface PageRequests {
  fetch: FetchLike
  deflate: Deflate
  /** From now on, requests must survive the page; undone when the page is shown again. */
  setLeaving(leaving: boolean): void
}

/** The page's own `fetch`, bounded in time; while the page is being left, requests start at once and outlive it. */
export function createPageRequests(): PageRequests {
  const pageFetch = window.fetch.bind(window)
  let leaving = false
  return {
    fetch: (url, request) =>
      pageFetch(url, {
        ...request,
        keepalive: leaving && request.body.length < keepaliveBytes,
        signal: AbortSignal.timeout(timeoutMs),
      }),
    // The platform compresses in tasks that a page on its way out never gets to.
    deflate: (bytes) => (leaving && bytes.length <= storedBytes ? storeRaw(bytes) : deflateRaw(bytes)),
    setLeaving(value) {
      leaving = value
    },
  }
}

/** Raw deflate of one final stored block: valid and uncompressed. */
function storeRaw(bytes: Bytes): Bytes {
  const stored = new Uint8Array(5 + bytes.length)
  const header = new DataView(stored.buffer)
  header.setUint8(0, 1)
  header.setUint16(1, bytes.length, true)
  header.setUint16(3, ~bytes.length & 0xffff, true)
  stored.set(bytes, 5)
  return stored
}
