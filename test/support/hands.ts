import { type Behavior, behaviorSchema } from '../../schemas/observations.ts'
import { planSession } from '../../services/cli/simulate/generate/plan.ts'
import { addBehavior } from '../../services/scoring/session/observed.ts'

/** What `count` people did with their pointers, keys and fingers, each by themselves. */
export function peoplesHands(seed: string, count: number): Behavior[] {
  const found: Behavior[] = []
  for (let index = 0; found.length < count; index++) {
    const { actor, batches, closing } = planSession(seed, index)
    if (actor !== 'human') continue
    const parts = [...batches, closing].flatMap(({ behavior }) => behavior ?? [])
    const [first, ...others] = parts
    if (first) found.push(others.reduce(addBehavior, first))
  }
  return found
}

// Counts are whole, and a path is as long as a straight line at least.
const measured = /^(duration_ms|interval_|straightness|speed_std|hold_|radius_std|distance|time_)/

/** A copy whose numbers are each changed by at most this share. `next` gives numbers from 0 to 1. */
export function withNoise(behavior: Behavior, noise: number, next: () => number): Behavior {
  const change = (name: string, value: number | null) => {
    if (value === null) return null
    const changed = value * (1 + (2 * next() - 1) * noise)
    if (name === 'straightness') return Math.max(1, changed)
    return measured.test(name) ? changed : Math.round(changed)
  }
  return behaviorSchema.parse(
    Object.fromEntries(
      Object.entries(behavior).map(([channel, members]) => [
        channel,
        Object.fromEntries(Object.entries(members).map(([name, value]) => [name, change(name, value)])),
      ]),
    ),
  )
}
