import type { GateSessionId } from '../../../infra/ids.ts'

/** What ends by itself. */
export type EndKind = 'deliveries' | 'pages' | 'codes' | 'sessions'

export interface End {
  kind: EndKind
  gateSessionId: GateSessionId
}

/** What could not be ended at the last attempt, so that it keeps nothing else waiting. */
export interface FailedEnds {
  /** The sessions of a kind. */
  of(kind: EndKind): GateSessionId[]
  /** All of them, the longest untried first. */
  all(): End[]
  /** It was tried just now, without success. */
  add(end: End): void
  remove(end: End): void
}

/** Of more than `max` (default 10,000) the longest untried are forgotten, and taken for new ones. */
export function createFailedEnds({ max = 10_000 }: { max?: number } = {}): FailedEnds {
  const ends = new Map<string, End>()
  const nameOf = ({ kind, gateSessionId }: End) => `${kind} ${gateSessionId}`
  return {
    of: (kind) => [...ends.values()].filter((end) => end.kind === kind).map((end) => end.gateSessionId),
    all: () => [...ends.values()],
    add(end) {
      // A map is in the order of insertion.
      ends.delete(nameOf(end))
      ends.set(nameOf(end), end)
      for (const oldest of ends.keys()) if (ends.size > max) ends.delete(oldest)
    },
    remove: (end) => void ends.delete(nameOf(end)),
  }
}
