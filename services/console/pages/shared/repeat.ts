const longestWaitMs = 600_000

/** Calls `repeat` after each wait. One that slows down waits twice as long each time, up to ten minutes. */
export function repeatAfter(
  repeat: () => void,
  { everyMs, slowsDown }: { everyMs: number; slowsDown: boolean },
): () => void {
  let timer: ReturnType<typeof setTimeout>
  const wait = (ms: number) => {
    timer = setTimeout(() => {
      repeat()
      wait(slowsDown ? Math.min(2 * ms, longestWaitMs) : ms)
    }, ms)
  }
  wait(everyMs)
  return () => clearTimeout(timer)
}
