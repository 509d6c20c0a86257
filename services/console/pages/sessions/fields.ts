import { iso, type Span } from '../shared/span.ts'

/** What sessions can be filtered by, in the order in which it is offered. `group_by` counts all but the last ones. */
export const fields = {
  verdict: 'Verdict',
  signal: 'Signal',
  attribution: 'Attribution',
  country: 'Country',
  asn: 'ASN',
  network: 'Network',
  page_host: 'Page',
  browser: 'Browser',
  os: 'System',
  agent_status: 'Agent',
  agent_provider: 'Agent’s operator',
  mark: 'Mark',
  handed_off: 'Handed off',
  key_id: 'Key',
  client_user_id: 'User',
  visitor_id: 'Visitor',
  ip: 'Address',
  score_min: 'Score at least',
  score_max: 'Score at most',
} as const
export type Field = keyof typeof fields

export const fieldNames = Object.keys(fields).filter((name): name is Field => Object.hasOwn(fields, name))

const ungrouped: readonly Field[] = ['client_user_id', 'visitor_id', 'ip', 'score_min', 'score_max']
export const isGrouped = (field: Field): boolean => !ungrouped.includes(field)

/** The filters of an address, as the API takes them, without times. */
export function filtersOf(query: URLSearchParams): URLSearchParams {
  const entries = fieldNames.flatMap((name) => query.getAll(name).map((value) => [name, value]))
  const search = query.get('search')
  return new URLSearchParams(search ? [...entries, ['search', search]] : entries)
}

/** The parameters of a request for what the address asks for. */
export function asked(query: URLSearchParams, { since, until }: Span): URLSearchParams {
  return new URLSearchParams([...filtersOf(query), ['since', iso(since)], ['until', iso(until)]])
}
