import { isoTime, type TimeSpan } from '../shared/span.ts'

/** What sessions can be filtered by, in the order in which it is offered. `group_by` counts all but the last ones. */
export const filterTitles = {
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
export type Field = keyof typeof filterTitles

export const fieldNames = Object.keys(filterTitles).filter((name): name is Field =>
  Object.hasOwn(filterTitles, name),
)

const ungrouped: readonly Field[] = ['client_user_id', 'visitor_id', 'ip', 'score_min', 'score_max']
export const isGrouped = (field: Field): boolean => !ungrouped.includes(field)

/** The filters of an address, as the API takes them, without times. */
export function filtersIn(query: URLSearchParams): URLSearchParams {
  const entries = fieldNames.flatMap((name) => query.getAll(name).map((value) => [name, value]))
  const search = query.get('search')
  return new URLSearchParams(search ? [...entries, ['search', search]] : entries)
}

/** The parameters of a request for what the address asks for. */
export function requestParameters(query: URLSearchParams, { since, until }: TimeSpan): URLSearchParams {
  return new URLSearchParams([...filtersIn(query), ['since', isoTime(since)], ['until', isoTime(until)]])
}
