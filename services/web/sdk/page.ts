import type { PageRequests } from './requests.ts'

interface PageOptions {
  /** Sends unsent observations, and returns the milliseconds until the next batch. */
  flush(): Promise<number>
  requests: PageRequests
  report(error: unknown): void
  signal: AbortSignal
}

// Milliseconds between retries: doubled each time, from `first` up to `last`.
const retryMs = { first: 5_000, last: 300_000 }

/**
 * Sends batches at the server's interval while the page is visible. The rest is sent when the page is hidden or left,
 * because mobile browsers kill hidden pages without another event. A page that is shown again, also from the
 * back/forward cache, resumes.
 */
export function followPage({ flush, requests, report, signal }: PageOptions): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let delay = retryMs.first

  function schedule(ms: number): void {
    clearTimeout(timer)
    if (!signal.aborted && document.visibilityState === 'visible') timer = setTimeout(tick, ms)
  }

  function tick(): void {
    flush().then(
      (intervalMs) => {
        delay = retryMs.first
        schedule(intervalMs)
      },
      (error: unknown) => {
        if (!signal.aborted) report(error)
        schedule(delay)
        delay = Math.min(delay * 2, retryMs.last)
      },
    )
  }

  // Browsers before 2021 ignore a listener's signal.
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
  whenVisible(() => !signal.aborted && tick())
}

// A prerendered page has no visitor yet, so it starts when it becomes visible.
function whenVisible(begin: () => void): void {
  const prerendering: unknown = Reflect.get(document, 'prerendering')
  if (prerendering === true) document.addEventListener('prerenderingchange', begin, { once: true })
  else begin()
}
