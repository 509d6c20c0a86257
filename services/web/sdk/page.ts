import type { PageRequests } from './requests.ts'

interface PageOptions {
  /** Sends what has not been sent, and returns the milliseconds until the next time. */
  flush(): Promise<number>
  requests: PageRequests
  report(error: unknown): void
  signal: AbortSignal
}

// Milliseconds between tries after a failure; doubled each time up to the last.
const retryMs = { first: 5_000, last: 300_000 }

/**
 * Sends batches while the page is in view, at the server's interval. What is left goes when the page is hidden or
 * left, because mobile browsers end hidden pages without another event. A page that comes back (from another tab, or
 * from the back/forward cache with everything it had in memory) goes on where it was.
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

  // Browsers of before 2021 do not take a listener away by its signal.
  function leave(): void {
    if (signal.aborted) return
    clearTimeout(timer)
    requests.setLeaving(true)
    flush().catch(report)
  }

  function comeBack(): void {
    if (signal.aborted) return
    requests.setLeaving(false)
    tick()
  }

  const listening = { signal }
  document.addEventListener(
    'visibilitychange',
    () => (document.visibilityState === 'hidden' ? leave() : comeBack()),
    listening,
  )
  window.addEventListener('pagehide', leave, listening)
  window.addEventListener('pageshow', (event) => event.persisted && comeBack(), listening)
  signal.addEventListener('abort', () => clearTimeout(timer))
  whenVisible(() => !signal.aborted && tick())
}

// A prerendered page has no visitor yet, so it starts when it becomes visible.
function whenVisible(begin: () => void): void {
  const prerendering: unknown = Reflect.get(document, 'prerendering')
  if (prerendering === true) document.addEventListener('prerenderingchange', begin, { once: true })
  else begin()
}
