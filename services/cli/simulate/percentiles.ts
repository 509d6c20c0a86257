/** How long a kind of request took, in milliseconds. */
export interface LatencySummary {
  count: number
  p50: number
  p95: number
  p99: number
  max: number
}

/** Percentiles by nearest rank: each is a value that was measured. All are 0 when nothing was. */
export function summarize(durations: readonly number[]): LatencySummary {
  const sorted = Float64Array.from(durations).sort()
  const at = (share: number) => round(sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0)
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) }
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100
}
