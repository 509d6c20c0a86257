import { Presets, SingleBar } from 'cli-progress'

export interface Progress {
  update(finished: number): void
  stop(): void
}

/** A bar on standard error, so that the report on standard output can be piped; nothing when not enabled. */
export function startProgress({ total, enabled }: { total: number; enabled: boolean }): Progress {
  if (!enabled) return { update: () => {}, stop: () => {} }
  const format = '{bar} {percentage}% | {value}/{total} sessions | {duration_formatted} | ETA {eta_formatted}'
  const bar = new SingleBar({ format, stream: process.stderr, hideCursor: true }, Presets.shades_classic)
  bar.start(total, 0)
  return { update: (finished) => bar.update(finished), stop: () => bar.stop() }
}
