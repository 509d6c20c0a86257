const redrawMs = 200
const barWidth = 30

/** Creates a progress bar, which draws nothing if standard error is not a terminal. `end` removes the bar. */
export function progressBar(
  total: number,
  options: { out?: { isTTY?: boolean; write(text: string): unknown }; clock?: () => number } = {},
) {
  const { out = process.stderr, clock = Date.now } = options
  const startedAt = clock()
  let drawnAt = startedAt
  let done = 0
  const bar = {
    add: (count: number): void => bar.set(done + count),
    set(count: number): void {
      done = count
      if (!out.isTTY || clock() - drawnAt < redrawMs) return
      drawnAt = clock()
      out.write(`\r\x1b[K${barText(done, { total, seconds: (drawnAt - startedAt) / 1000 })}`)
    },
    end(): void {
      if (out.isTTY) out.write('\r\x1b[K')
    },
  }
  return bar
}

/** Returns text such as `[######......]  50 %, 12 s left`. */
export function barText(
  done: number,
  { total, seconds }: { total: number; seconds: number },
): string {
  const share = Math.min(1, done / Math.max(1, total))
  const filled = Math.round(share * barWidth)
  const percent = `${Math.floor(share * 100)} %`.padStart(5)
  const left = share > 0 ? `, ${durationText((seconds * (1 - share)) / share)} left` : ''
  return `[${'#'.repeat(filled).padEnd(barWidth, '.')}] ${percent}${left}`
}

function durationText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`
  return seconds < 3600 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`
}
