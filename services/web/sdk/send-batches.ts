import type { PageRequests } from './requests.ts'

interface BatchOptions {
  /** Sends new observations, if any. Returns the milliseconds until the next batch. */
  flush(): Promise<number>
  requests: PageRequests
  report(error: unknown): void
  signal: AbortSignal
}

// Retry delays, doubled each time.
const retryMs = { min: 5_000, max: 300_000 }

/**
 * Sends batches at the server's interval while the page is visible, and the rest when it is hidden or left, because
 * mobile browsers kill hidden pages without another event. Resumes when the page is shown again.
 */
export function sendBatches({ flush, requests, report, signal }: BatchOptions): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let delay = retryMs.min

  function schedule(ms: number): void {
    clearTimeout(timer)
    if (!signal.aborted && document.visibilityState === 'visible') timer = setTimeout(tick, ms)
  }

  function tick(): void {
    flush().then(
      (intervalMs) => {
        delay = retryMs.min
        schedule(intervalMs)
      },
      (error: unknown) => {
        if (!signal.aborted) report(error)
        schedule(delay)
        delay = Math.min(delay * 2, retryMs.max)
      },
    )
  }

  // Browsers before 2021 don't remove listeners by signal.
  function onLeave(): void {
    if (signal.aborted) return
    clearTimeout(timer)
    requests.setLeaving(true)
    flush().catch(report)
  }

  function onReturn(): void {
    if (signal.aborted) return
    requests.setLeaving(false)
    tick()
  }

  const listenerOptions = { signal }
  document.addEventListener(
    'visibilitychange',
    () => (document.visibilityState === 'hidden' ? onLeave() : onReturn()),
    listenerOptions,
  )
  window.addEventListener('pagehide', onLeave, listenerOptions)
  window.addEventListener('pageshow', (event) => event.persisted && onReturn(), listenerOptions)
  signal.addEventListener('abort', () => clearTimeout(timer))
  whenActivated(() => !signal.aborted && tick())
}

// A prerendered page has no visitor yet, so waits until the page is activated.
function whenActivated(begin: () => void): void {
  const prerendering: unknown = Reflect.get(document, 'prerendering')
  if (prerendering === true) document.addEventListener('prerenderingchange', begin, { once: true })
  else begin()
}
