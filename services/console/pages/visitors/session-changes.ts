import type { SessionSummary } from '../../../readback/schemas/sessions.ts'

/** A difference between a session and the one before it; null = unknown. */
interface MemberChange {
  field: string
  from: string | null
  to: string | null
}

/** Returns the differences between two sessions of a visitor. Ignores values missing in either, except for the user. */
export function changesBetween(earlier: SessionSummary, later: SessionSummary): MemberChange[] {
  const [before, after] = [fieldsOf(earlier), fieldsOf(later)]
  const changes = Object.entries(after).map(([field, to]) => ({
    field,
    from: before[field] ?? null,
    to,
  }))
  return changes.filter(({ field, from, to }) => from !== to && (field === 'User' || (from && to)))
}

function fieldsOf({ facts, client_user_id: user }: SessionSummary): Record<string, string | null> {
  const { browser, browser_version, os, asn, network_holder, country, network } = facts ?? {}
  return {
    User: user,
    Browser: joinParts(browser, browser_version),
    System: joinParts(os),
    Network: joinParts(asn && `AS${asn}`, network_holder),
    Country: joinParts(country),
    'Network type': joinParts(network),
  }
}

const joinParts = (...parts: (string | number | null | undefined)[]) =>
  parts.filter(Boolean).join(' ') || null

const methods: Record<string, string> = {
  continuity: 'Matched by an id stored in the browser',
  native_persistent: 'Matched by the install id of the app',
  fingerprint: 'Storage was cleared; matched by fingerprint',
  fingerprint_evolution:
    'Storage was cleared; matched by fingerprint, with changes typical of one device',
  new: 'New visitor',
  native_new: 'New visitor',
  existing: 'Matched by a merge',
}

/** Describes how a session was matched to its visitor, with the confidence if the match is probabilistic. */
export function describeMatch(visitor: SessionSummary['visitor_fingerprint']): string {
  const { method, basis } = visitor?.resolution ?? {}
  const words = methods[method ?? ''] ?? 'Match unknown'
  const isProbabilistic = basis === 'probabilistic' && visitor?.confidence != null
  return isProbabilistic ? `${words} (${visitor.confidence} % confidence)` : words
}
