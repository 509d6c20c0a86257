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
        Object.fromEntries(
          Object.entries(members).map(([name, value]) => [name, change(name, value)]),
        ),
      ]),
    ),
  )
}

/** Input of people at a desk that counts as natural. */
export function peoplesInput(seed: string, count: number): Behavior[] {
  const isAtDesk = ({ mouse, keyboard }: Behavior) => mouse.moves >= 10 && keyboard.keys >= 8
  const people = peoplesHands(seed, count * 10)
    .filter(isAtDesk)
    .slice(0, count)
  if (people.length < count) throw new Error(`only ${people.length} of ${count} people`)
  // As a screen of 60 Hz puts the moves of a pointer together.
  return people.map(({ mouse, ...rest }) => ({
    ...rest,
    mouse: {
      ...mouse,
      coalesced: Math.max(3, Math.round(mouse.moves * ((mouse.interval_mean ?? 20) / 40))),
    },
  }))
}

/** A copy of which this share of the numbers is another. */
export function withSomeChanged(behavior: Behavior, share: number, next: () => number): Behavior {
  return behaviorSchema.parse(
    Object.fromEntries(
      Object.entries(behavior).map(([channel, members]) => [
        channel,
        Object.fromEntries(
          Object.entries(members).map(([name, value]) => {
            if (value === null || next() >= share) return [name, value]
            const changed = value * (0.4 + 1.6 * next())
            return [name, measured.test(name) ? changed : Math.round(changed)]
          }),
        ),
      ]),
    ),
  )
}

/** With as many events as its parts say, so that the numbers contradict each other nowhere. */
export const consistent = ({ mouse, keyboard, ...rest }: Behavior): Behavior => ({
  ...rest,
  mouse: { ...mouse, events: mouse.moves + mouse.clicks },
  keyboard: { ...keyboard, events: 2 * keyboard.keys },
})
