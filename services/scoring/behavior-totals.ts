import { type Behavior, behaviorSchema } from '../../schemas/observations.ts'

type Channel = Record<string, number | null>

/** Members that are means or spreads: weighted by the number of events. Everything else adds up. */
const averaged = new Set([
  'interval_mean',
  'interval_std',
  'straightness',
  'speed_std',
  'hold_mean',
  'hold_std',
  'radius_std',
])
const maxCount = 2 ** 31 - 1

/** The behaviour of a whole session: what was known, and what one more batch reports. */
export function addBehavior(known: Behavior | null, more: Behavior): Behavior {
  if (!known) return more
  const channels = Object.entries(more).map(([name, channel]) => [
    name,
    addChannel(channelOf(known, name), channel),
  ])
  return behaviorSchema.parse(Object.fromEntries(channels))
}

/** Whether any input at all was observed. */
export function hasBehavior(behavior: Behavior | null): boolean {
  return behavior !== null && Object.values(behavior).some((channel) => channel.events > 0)
}

function channelOf(behavior: Behavior, name: string): Channel {
  return Object.entries(behavior).find(([known]) => known === name)?.[1] ?? {}
}

function addChannel(known: Channel, more: Channel): Channel {
  const weights = { known: known.events ?? 0, more: more.events ?? 0 }
  const names = Object.keys({ ...known, ...more })
  return Object.fromEntries(
    names.map((name) => [name, addMember(name, known[name] ?? null, more[name] ?? null, weights)]),
  )
}

function addMember(
  name: string,
  known: number | null,
  more: number | null,
  weights: { known: number; more: number },
): number | null {
  if (known === null) return more
  if (more === null) return known
  if (name === 'time_to_submit_ms') return Math.min(known, more)
  if (!averaged.has(name)) return Math.min(known + more, maxCount)
  const total = weights.known + weights.more
  return total === 0 ? known : (known * weights.known + more * weights.more) / total
}
