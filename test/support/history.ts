import { randomBytes } from 'node:crypto'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { asId, timeOrderedId } from '../../infra/ids.ts'
import type { SessionScored } from '../../schemas/events.ts'
import { sessionScored, visitorLink } from './session-scored.ts'

export const countedFields = [
  ...(['verdict', 'signal', 'attribution', 'country', 'asn', 'network'] as const),
  ...(['page_host', 'key_id', 'browser', 'os', 'handed_off', 'mark'] as const),
]
export type CountedField = (typeof countedFields)[number]
// What a session has as long as it is in the list.
const lasting: CountedField[] = ['verdict', 'key_id', 'mark']

export type HistoryEvent = Extract<
  DomainEvent,
  { type: 'SessionScored' | 'VisitorSplit' | 'VisitorMerged' }
>

/** A session as the list has it. */
export interface Listed {
  id: string
  visitor_fingerprint: { id: string } | null
  latest_decision: { verdict: string; evaluated_at: string }
  mark: { label: string } | null
}

export interface Group {
  start: string | null
  kind: 'value' | 'other' | 'ended'
  values: Partial<Record<CountedField, string | null>>
  sessions: number
}

interface Counting {
  groupBy: CountedField[]
  interval: 'none' | 'hour' | 'day'
  /** Decisions from before it have ended. */
  endedBefore: number
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const lengths = { none: null, hour: hourMs, day: dayMs }

export const decidedAt = ({ latest_decision }: Listed): number =>
  Date.parse(latest_decision.evaluated_at)

interface Known {
  last: SessionScored
  handedOff: boolean
}

/** Decisions of the last eight days as servers wrote them, and what they are counted as without any database. */
export function createHistory({
  organizationId,
  keyIds,
}: {
  organizationId: string
  keyIds: [string, ...string[]]
}) {
  const known = new Map<string, Known>()
  const newVisitor = () => timeOrderedId('vid', Date.now() - 9 * dayMs, randomBytes)
  const visitors = Array.from({ length: 12 }, newVisitor)

  function decide(n: number, session_id: string, evaluated_at: number): SessionScored {
    const visitor = n % visitors.length
    const last = sessionScored({
      ...variety(n),
      session_id,
      evaluated_at,
      created_at: evaluated_at,
      is_provisional: false,
      event_id: timeOrderedId('evt', evaluated_at, randomBytes),
      organization_id: asId('org', organizationId),
      key_id: keyIds[n % keyIds.length] ?? keyIds[0],
      visitor: visitorLink({ id: visitors[visitor] ?? '', continuity_id: `kept ${visitor}` }),
    })
    const handedOff = last.hand_off !== null || (known.get(session_id)?.handedOff ?? false)
    known.set(session_id, { last, handedOff })
    return last
  }

  function valuesOf(field: CountedField, { id, mark, latest_decision }: Listed): (string | null)[] {
    const decided = known.get(id)
    if (!decided) throw new Error(`nobody decided ${id}`)
    const { last, handedOff } = decided
    switch (field) {
      case 'verdict':
        return [latest_decision.verdict]
      case 'mark':
        return [mark?.label ?? 'none']
      case 'signal':
        return last.signals_fired.map(({ signal }) => signal)
      case 'attribution':
        return (last.attribution?.labels ?? []).map(({ kind, value }) => `${kind}:${value}`)
      case 'country':
        return [last.network.location?.country_code ?? null]
      case 'asn':
        return [last.network.routing.asn?.slice('AS'.length) ?? null]
      case 'network':
        return [last.network.anonymity.hosting ? 'hosting' : 'other']
      case 'page_host':
        return [new URL(last.request.url).hostname]
      case 'key_id':
        return [last.key_id]
      case 'browser':
        return [last.browser.name]
      case 'os':
        return [last.device.operating_system.name]
      case 'handed_off':
        return [String(handedOff)]
    }
  }

  return {
    visitors,
    newVisitor,
    /** Some sessions are decided again an hour later. */
    begin: (sessions: number): SessionScored[] =>
      Array.from({ length: sessions }, (_, n) => {
        const at = Date.now() - 8 * dayMs + n * 1_700_000
        const session_id = timeOrderedId('sid', at, randomBytes)
        const times = n % 3 === 0 ? [at, at + hourMs] : [at]
        return times.map((time, place) => decide(n + place * 7, session_id, time))
      }).flat(),
    /** With other values, two days later than before. */
    decideAnew: (listed: Listed[]): SessionScored[] =>
      listed.map((one, n) => decide(n + 3, one.id, decidedAt(one) + 2 * dayMs)),
    /** How many of the listed sessions are in each group; the names of groups are those of `namedGroups`. */
    count(listed: Listed[], { groupBy, interval, endedBefore }: Counting): [string, number][] {
      const groups = new Map<string, number>()
      const asksFacts = groupBy.some((field) => !lasting.includes(field))
      for (const one of listed) {
        const at = decidedAt(one)
        const length = lengths[interval]
        const start = length && new Date(at - (at % length)).toISOString()
        const add = (kind: string, ...values: (string | null)[]) => {
          const name = nameOf(start, kind, values)
          groups.set(name, (groups.get(name) ?? 0) + 1)
        }
        if (asksFacts && at < endedBefore) add('ended')
        else
          for (const values of combinations(groupBy.map((field) => valuesOf(field, one))))
            add('value', ...values)
      }
      return sorted([...groups])
    },
  }
}

export type History = ReturnType<typeof createHistory>

const nameOf = (...parts: unknown[]) => JSON.stringify(parts)
const sorted = (entries: [string, number][]) => entries.toSorted(([a], [b]) => (a < b ? -1 : 1))

/** What an answer of `GET /v1/sessions/aggregates` says, in the form of `count`. */
export function namedGroups(groups: Group[], groupBy: CountedField[]): [string, number][] {
  return sorted(
    groups.map(({ start, kind, values, sessions }) => {
      const named = kind === 'value' ? groupBy.map((field) => values[field] ?? null) : []
      return [nameOf(start, kind, named), sessions]
    }),
  )
}

// Each value of the first with each of the second, and so on.
const combinations = <T>(lists: T[][]): T[][] =>
  lists.reduce<T[][]>(
    (all, values) => all.flatMap((one) => values.map((value) => [...one, value])),
    [[]],
  )

/** A few values of each member, so that many sessions share them. */
function variety(n: number): Partial<SessionScored> {
  const of = <T>(values: readonly [T, ...T[]]): T => values[n % values.length] ?? values[0]
  const base = sessionScored()
  const signal = (slug: string) => ({
    role: 'risk' as const,
    category: 'environment' as const,
    strength: 'weak' as const,
    channel: 'machine',
    signal_score: 5,
    ...base.signals_fired[0],
    signal: slug,
  })
  return {
    verdict: of(['bot', 'human', 'inconclusive', 'human']),
    hand_off:
      n % 5 === 0 ? { challenge_answered: true, input_observed: true, binding: null } : null,
    signals_fired: [signal('lone_click'), signal(of(['bare_machine', 'engine_mismatch']))],
    attribution: {
      labels: [{ kind: 'tool', value: of(['playwright', 'selenium']), label: 'x', confidence: 90 }],
      behaviors: [],
    },
    request: {
      referrer: null,
      user_agent: 'x',
      ip_address: '203.0.113.9',
      screen_size: null,
      is_touch_capable: null,
      url: of([
        'https://shop.example/a',
        'https://www.shop.example/b?c',
        'https://bücher.example/',
      ]),
    },
    network: {
      ...base.network,
      status: 'ready',
      location: {
        city: null,
        region: null,
        country: null,
        latitude: null,
        longitude: null,
        timezone: null,
        postal_code: null,
        accuracy_radius_km: null,
        country_code: of(['DE', 'FR', 'US', 'DE']),
      },
      routing: { asn: of(['AS64500', 'AS64501']), organization: 'Example' },
      anonymity: { ...base.network.anonymity, hosting: n % 4 === 0 },
    },
    browser: { ...base.browser, name: of(['Chrome', 'Firefox', 'Safari']) },
    device: {
      ...base.device,
      operating_system: { name: of(['Windows', 'macOS', 'Linux']), version: '1' },
    },
  }
}

interface Reassigned {
  organizationId: string
  sessions: Listed[]
  to: string
}

/** The sessions become those of another visitor, as scoring and corrections write it. */
export function split(reassigned: Reassigned): HistoryEvent[] {
  const cause = 'continuity_returned' as const
  return reassignments(reassigned).map(({ at, ...about }) => ({
    type: 'VisitorSplit',
    data: { ...about, cause, split_at: at },
  }))
}

export function merge(reassigned: Reassigned): HistoryEvent[] {
  return reassignments(reassigned).map(({ at, ...about }) => ({
    type: 'VisitorMerged',
    data: { ...about, merged_at: at },
  }))
}

function reassignments({ organizationId, sessions, to }: Reassigned) {
  const at = Date.now()
  const about = { organization_id: asId('org', organizationId), environment: 'live' as const, at }
  return sessions.map(({ id, visitor_fingerprint }) => ({
    ...about,
    session_id: id,
    event_id: timeOrderedId('evt', at, randomBytes),
    confidence: 90,
    visitor_id: to,
    earlier_visitor_id: visitor_fingerprint?.id ?? '',
  }))
}
