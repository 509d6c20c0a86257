import { Presets, SingleBar } from 'cli-progress'
import type { Waits } from './pacer.ts'

export interface Progress {
  update(finished: number, waits: Waits): void
  stop(): void
}

/** A bar on standard error, so that the report on standard output can be piped; nothing when not enabled. */
export function startProgress({ total, enabled }: { total: number; enabled: boolean }): Progress {
  if (!enabled) return { update: () => {}, stop: () => {} }
  const format =
    '{bar} {percentage}% | {value}/{total} sessions | {duration_formatted} | ETA {eta_formatted}{limit}'
  const bar = new SingleBar({ format, stream: process.stderr, hideCursor: true }, Presets.shades_classic)
  bar.start(total, 0, { limit: '' })
  return {
    update: (finished, waits) => bar.update(finished, { limit: limitText(waits) }),
    stop: () => bar.stop(),
  }
}

function limitText({ denied, held, waitedMs }: Waits): string {
  if (denied + held === 0) return ''
  return ` | rate limit: ${held} held back, ${denied} denied, ${(waitedMs / 1000).toFixed(1)} s waited`
}
