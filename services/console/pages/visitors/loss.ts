import { pluralize } from '../shared/format.ts'

/** Counted members of a visitor's export. */
export interface Exported {
  visitors: object[]
  sessions: { decisions: object[]; marks: object[]; webhook_events: { deliveries: number }[] }[]
}

/** Summarizes what an erasure deletes: `2 sessions, 1 visitor, 4 decisions`. */
export function lossInWords({ visitors, sessions }: Exported): string {
  const events = sessions.flatMap(({ webhook_events }) => webhook_events)
  const counts = {
    session: sessions.length,
    visitor: visitors.length,
    decision: sessions.flatMap(({ decisions }) => decisions).length,
    label: sessions.flatMap(({ marks }) => marks).length,
    'webhook event': events.length,
    'webhook delivery': events.reduce((sum, { deliveries }) => sum + deliveries, 0),
  }
  return Object.entries(counts)
    .flatMap(([thing, count]) => (count === 0 ? [] : [pluralize(thing, count)]))
    .join(', ')
}
