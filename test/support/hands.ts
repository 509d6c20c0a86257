import { type Behavior, behaviorSchema } from '../../schemas/observations.ts'
import { planSession } from '../../services/cli/simulate/generate/plan.ts'
import { addBehavior } from '../../services/scoring/session/observations.ts'

/** Returns the independent input of `count` people. */
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

// Counts stay integers, and a path is at least as long as a straight line.
const measured = /^(duration_ms|interval_|straightness|speed_std|hold_|radius_std|distance|time_)/

/** Returns a copy with each number changed by at most this share. `next` returns numbers from 0 to 1. */
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

/** Returns input of people at a desk that counts as natural. */
export function peoplesInput(seed: string, count: number): Behavior[] {
  const isAtDesk = ({ mouse, keyboard }: Behavior) => mouse.moves >= 10 && keyboard.keys >= 8
  const people = peoplesHands(seed, count * 10)
    .filter(isAtDesk)
    .slice(0, count)
  if (people.length < count) throw new Error(`only ${people.length} of ${count} people`)
  // Coalesces pointer moves like a screen of 60 Hz.
  return people.map(({ mouse, ...rest }) => ({
    ...rest,
    mouse: {
      ...mouse,
      coalesced: Math.max(3, Math.round(mouse.moves * ((mouse.interval_mean ?? 20) / 40))),
    },
  }))
}

/** Returns a copy with this share of the numbers replaced. */
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

/** Returns the behavior with event counts that match its parts. */
export const consistent = ({ mouse, keyboard, ...rest }: Behavior): Behavior => ({
  ...rest,
  mouse: { ...mouse, events: mouse.moves + mouse.clicks },
  keyboard: { ...keyboard, events: 2 * keyboard.keys },
})
