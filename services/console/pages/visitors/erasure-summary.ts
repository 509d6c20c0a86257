import { pluralize } from '../shared/format.ts'

/** The members of a visitor's export that are counted. */
export interface VisitorExport {
  visitors: object[]
  sessions: { decisions: object[]; marks: object[]; webhook_events: { deliveries: number }[] }[]
}

/** Summarizes what an erasure deletes: `2 sessions, 1 visitor, 4 decisions`. */
export function describeErasure({ visitors, sessions }: VisitorExport): string {
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
    .flatMap(([name, count]) => (count === 0 ? [] : [pluralize(name, count)]))
    .join(', ')
}
