import type { SessionSummary } from '../../../readback/schemas/sessions.ts'

/** What a session and the one before it differ in; null = nothing is known. */
interface MemberChange {
  what: string
  from: string | null
  to: string | null
}

/** What changed from one session of a visitor to the next. What one of them does not tell is no change. */
export function changesBetween(earlier: SessionSummary, later: SessionSummary): MemberChange[] {
  const [before, after] = [membersOf(earlier), membersOf(later)]
  const all = Object.entries(after).map(([what, to]) => ({ what, from: before[what] ?? null, to }))
  return all.filter(({ what, from, to }) => from !== to && (what === 'User' || (from && to)))
}

function membersOf({ facts, client_user_id: user }: SessionSummary): Record<string, string | null> {
  const { browser, browser_version, os, asn, network_holder, country, network } = facts ?? {}
  return {
    User: user,
    Browser: together(browser, browser_version),
    System: together(os),
    Network: together(asn && `AS${asn}`, network_holder),
    Country: together(country),
    'Kind of network': together(network),
  }
}

const together = (...parts: (string | number | null | undefined)[]) =>
  parts.filter(Boolean).join(' ') || null

const methods: Record<string, string> = {
  continuity: 'Linked by an id that the browser kept',
  native_persistent: 'Linked by the id of its installation',
  fingerprint: 'What the browser kept was lost; linked by likeness',
  fingerprint_evolution:
    'What the browser kept was lost; linked by likeness, with changes that one device has',
  new: 'Began as a new visitor',
  native_new: 'Began as a new visitor',
  existing: 'Linked by a merger',
}

/** How a session was linked to its visitor, with the probability where that is no certainty. */
export function linkInWords(visitor: SessionSummary['visitor_fingerprint']): string {
  const { method, basis } = visitor?.resolution ?? {}
  const words = methods[method ?? ''] ?? 'How it was linked is not known'
  const isLikely = basis === 'probabilistic' && visitor?.confidence != null
  return isLikely ? `${words} (${visitor.confidence} % sure)` : words
}
