import { ago, exact } from './format.ts'
import { now } from './span.ts'

/** How long ago, with the exact time in its title. */
export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exact(at)}>
      {ago(at, Math.min(Date.now(), now.value))}
    </time>
  )
}
