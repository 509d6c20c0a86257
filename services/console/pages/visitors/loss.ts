import { amount } from '../shared/format.ts'

/** Members of a person's export that are counted. */
export interface Exported {
  visitors: object[]
  sessions: { decisions: object[]; marks: object[]; webhook_events: { deliveries: number }[] }[]
}

/** How many of what an erasure takes: `2 sessions, 1 visitor, 4 decisions`. */
export function lossInWords({ visitors, sessions }: Exported): string {
  const events = sessions.flatMap(({ webhook_events }) => webhook_events)
  const counts = {
    session: sessions.length,
    visitor: visitors.length,
    decision: sessions.flatMap(({ decisions }) => decisions).length,
    mark: sessions.flatMap(({ marks }) => marks).length,
    'webhook event': events.length,
    'webhook delivery': events.reduce((sum, { deliveries }) => sum + deliveries, 0),
  }
  return Object.entries(counts)
    .flatMap(([what, count]) => (count === 0 ? [] : [amount(what, count)]))
    .join(', ')
}
