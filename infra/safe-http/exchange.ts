import type { Dispatcher } from 'undici'
import { DeliveryFailure, exchangeFailure, type Progress } from './failure.ts'
import type { Lane } from './lane.ts'

export interface Post {
  /** Path and query. */
  path: string
  headers: Record<string, string>
  body: Buffer
  /** Of the response's body; what is beyond is not read. */
  maxBytes: number
}

export interface Answer {
  status: number
  retryAfter: string | undefined
  body: Buffer
  /** Nothing of it is left unread, so the connection is ready for another exchange. */
  isComplete: boolean
}

export interface Broken {
  failure: DeliveryFailure
  /** Closed before the first byte of a response, on a connection that had carried an exchange before. */
  isStale: boolean
}

/**
 * Posts once; follows no redirect and decompresses nothing. When `signal` fires, it is broken and the reason is the
 * failure. Never rejects.
 */
export function exchange(lane: Lane, post: Post, signal: AbortSignal): Promise<Answer | Broken> {
  return new Promise((resolve) => {
    const stop = () => settle({ failure: exchangeFailure(signal.reason, 'nothing'), isStale: false })
    function settle(result: Answer | Broken) {
      signal.removeEventListener('abort', stop)
      resolve(result)
    }
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    const { path, headers, body, maxBytes } = post
    const handler = createHandler({ lane, maxBytes, settle })
    lane.client.dispatch({ method: 'POST', path, headers, body }, handler)
  })
}

interface HandlerOptions {
  lane: Lane
  maxBytes: number
  settle(result: Answer | Broken): void
}

/** undici calls nothing of it any more after onResponseEnd or onResponseError. */
function createHandler({ lane, maxBytes, settle }: HandlerOptions): Dispatcher.DispatchHandler {
  let carriedBefore = 0
  let progress: Progress = 'nothing'
  let head: Pick<Answer, 'status' | 'retryAfter'> = { status: 0, retryAfter: undefined }
  const chunks: Buffer[] = []
  let size = 0
  const end = (isComplete: boolean) =>
    settle({ ...head, body: Buffer.concat(chunks).subarray(0, maxBytes), isComplete })
  return {
    onRequestStart() {
      carriedBefore = lane.carried++
    },
    onResponseStarted() {
      if (progress === 'nothing') progress = 'begun'
    },
    onResponseStart(_controller, status, headers) {
      // 1xx come before the response.
      if (status < 200) return
      progress = 'head'
      head = { status, retryAfter: first(headers['retry-after']) }
    },
    onResponseData(controller, chunk) {
      chunks.push(chunk)
      size += chunk.length
      if (size <= maxBytes) return
      end(false)
      controller.abort(new DeliveryFailure('reset', 'enough was read'))
    },
    onResponseEnd: () => end(true),
    onResponseError(_controller, error) {
      const failure = exchangeFailure(error, progress)
      const isStale = failure.reason === 'reset' && carriedBefore > 0 && progress === 'nothing'
      settle({ failure, isStale })
    },
  }
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
