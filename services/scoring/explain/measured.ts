import type { Facts, Signal } from '../facts.ts'

/** What was measured where the signal fired, in words; null where its name says all. */
export function measuredOf(
  { slug, measured }: Pick<Signal, 'slug' | 'measured'>,
  facts: Facts,
): string | null {
  const ofInput = facts.behavior && measured?.(facts.behavior)
  return ofInput ?? ofNear(facts)[slug] ?? null
}

type Measured = Partial<Record<string, string>>

// Counts of other sessions.
function ofNear({ near, repeats }: Facts): Measured {
  if (!near || !repeats) return {}
  const equal = `${repeats.behavior_sessions.day} sessions within a day`
  return {
    replayed_behavior: equal,
    replayed_session: equal,
    nearly_replayed_behavior: `${near.sessions} sessions within a day`,
    nearly_replayed_session: `${near.on_machine} sessions within a day`,
    mass_produced_visitors: `${repeats.address_visitors.day} visitors within a day, ${near.at_address} sessions with nearly the same hands, ${near.pace_visitors} visitors with one pace`,
    steady_arrivals: `${repeats.address_sessions.hour} sessions within an hour, one every ${near.gap_seconds} s, give or take ${near.gap_deviation} %`,
    velocity_visitor: `${repeats.visitor_sessions.five_minutes} sessions within five minutes`,
  }
}
