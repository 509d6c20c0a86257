import type { Example } from './endpoint.ts'

export interface Seeded {
  /** Ids of sessions of the organization, as many as a mark may have. */
  sessionIds: string[]
  /** Distinct for each call. */
  call: number
}

type Costly = (example: Example, seeded: Seeded) => Example[]

const many = (count: number, item: (i: number) => string, separator = '&') =>
  Array.from({ length: count }, (_, i) => item(i)).join(separator)
const query = (path: string, ...queries: string[]): Example[] =>
  queries.map((text) => ({ method: 'GET', url: `${path}?${text}` }))

const absentSignals = many(50, (i) => `signal=none_${i}`)
const filters = [
  'country=ZZ',
  absentSignals,
  `country=ZZ&${many(50, (i) => `signal[not]=none_${i}`)}`,
  many(50, (i) => `attribution=none${i}`),
  `${many(50, (i) => `ip=10.${i}.0.0/16`)}&${many(50, (i) => `browser=b${i}`)}`,
  `without[not]=visitor_id&country=ZZ&${many(50, (i) => `client_user_id[not]=u${i}`)}`,
]
const allTime = 'since=0001-01-01T00:00:00Z&until=9999-12-31T00:00:00Z'

// As many components as the header takes, each of another member of a long dictionary.
const dictionary = many(1000, (i) => `k${i}`, ',').slice(0, 4000)
const signed = {
  'signature-agent': '"https://agent.example"',
  'signature-input': `sig=("@authority" "signature-agent" ${many(30, (i) => `"d";key="k${i}"`, ' ')});created=1800000000;expires=1800000300;keyid="k";tag="web-bot-auth"`,
  signature: `sig=:${Buffer.alloc(64).toString('base64')}:`,
  d: dictionary,
}

/** The most expensive legal inputs of endpoints whose cost depends on their input. Others take the example. */
export const costly: Record<string, Costly> = {
  listSessions: () => [
    ...query('/v1/sessions', ...filters.map((filter) => `limit=200&${filter}`)),
    ...query(
      '/v1/sessions',
      'limit=200',
      'limit=200&search=zzzzzz',
      'limit=200&search=a1',
      'search=%25',
    ),
  ],
  countSessions: () => {
    const each = [
      allTime,
      'group_by=signal,asn&top=100',
      'group_by=signal,attribution&top=100&interval=day&since=2026-11-01T00:00:00Z',
      'group_by=country,asn&interval=hour&since=2026-12-01T00:00:00Z',
      `group_by=signal&${absentSignals}`,
      ...filters,
    ]
    return query('/v1/sessions/aggregates', ...each)
  },
  getSession: ({ url }) =>
    query(
      url,
      'include=identification&include=score&include=log',
      'include=timeline&include=related',
    ),
  getVisitorFingerprint: ({ url }) => query(url, 'include=identification'),
  listVisitorFingerprints: () =>
    query(
      '/v1/fingerprints',
      'limit=200&include=latest_session&sort=seen_count',
      'limit=200&search=zzzzzz',
      'search=a1',
    ),
  listEvents: ({ url }) => query(url, 'limit=100'),
  listOrganizationAuditLog: ({ url }) => query(url, 'limit=200'),
  markSessions: (example, { sessionIds, call }) => [
    { ...example, body: { label: call % 2 ? 'bot' : 'human', session_ids: sessionIds } },
  ],
  scoreRequests: (example) => [{ ...example, body: { requests: fiftyOf(example.body) } }],
  checkAgentIpRotation: (example) => [{ ...example, body: tenOf(example.body) }],
  openCollectSession: (example) => [{ ...example, headers: { ...example.headers, ...signed } }],
}

function fiftyOf(body: Example['body']): object[] {
  const [request] = listIn(body, 'requests')
  const headers = [['User-Agent', 'curl/8.14.1'], ...Object.entries(signed)]
  return Array.from({ length: 50 }, () => ({ ...request, headers }))
}

function tenOf(body: Example['body']): object {
  const [item] = listIn(body, 'items')
  return { items: Array.from({ length: 10 }, (_, i) => ({ ...item, ip: `8.8.8.${i}` })) }
}

function listIn(body: unknown, member: string): object[] {
  const list =
    typeof body === 'object' && body !== null
      ? Object.entries(body).find(([name]) => name === member)
      : undefined
  return Array.isArray(list?.[1]) ? list[1] : []
}

const nested = `${'['.repeat(100_000)}${']'.repeat(100_000)}`

/** Returns inputs that only an attacker sends. */
export function hostile({ method, url, body, headers }: Example): Example[] {
  const crowded = {
    method,
    url: `${url}?${many(900, () => 'limit=1&search=%25', '&').slice(0, 12_000)}`,
  }
  const head = { method, url, headers: { ...headers, ...signed } }
  if (body === undefined) return [crowded, head]
  if (Buffer.isBuffer(body)) return [{ ...head, body: Buffer.alloc(120_000, 7) }]
  const json = { ...headers, 'content-type': 'application/json' }
  const strange = many(20_000, (i) => `"m${i}":0`, ',')
  return [
    { ...head, body },
    { method, url, headers: json, body: Buffer.from(nested) },
    { method, url, headers: json, body: Buffer.from(`{${strange}}`) },
    { method, url, headers: json, body: Buffer.from(`[${many(60_000, () => '{}', ',')}]`) },
  ]
}
