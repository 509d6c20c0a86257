import type pg from 'pg'
import { signalCode } from '../../projections/sessions/signal-codes.ts'
import { signalCatalogue } from '../../services/scoring/signals/catalogue.ts'

/** All values derive from the seed and the row number. */
const seed = 36
const slugs = signalCatalogue.map(({ slug }) => slug)
const countries =
  'US DE GB FR IN BR CA JP NL ES IT AU PL SE MX KR TR ID AR CH BE AT CZ DK NO FI PT IE RO HU GR IL'
const browsers = [
  'Chrome',
  'Safari',
  'Edge',
  'Firefox',
  'Samsung Internet',
  'Opera',
  'Brave',
  'Vivaldi',
]
const systems = ['Windows', 'iOS', 'Android', 'macOS', 'Linux', 'ChromeOS']
const list = (values: readonly string[]) => `array[${values.map((value) => `'${value}'`).join()}]`

export const spanMs = 90 * 24 * 60 * 60 * 1000
export const organizationId = 'org_00000000000000000000000001'

/** `u` is uniform from 0 to 1. With `zipf`, the first value is the most frequent. */
const functions = `create schema if not exists bench;
  create or replace function bench.u(i bigint, what integer) returns float8 language sql immutable parallel safe as
    $$ select (hashint8extended(i, what + ${seed * 1000}) & 9007199254740991)::float8 / 9007199254740992 $$;
  create or replace function bench.zipf(i bigint, what integer, n integer) returns integer language sql immutable parallel safe as
    $$ select floor(exp(bench.u(i, what) * ln(n + 1)))::integer $$;
  drop table if exists bench.sets;
  create table bench.sets as select s as id, array_agg(slug order by slug) as signals,
      string_agg(code, '' order by slug) as codes, array_agg(5 + length(slug) order by slug) as points
    from (select distinct s, bench.zipf(s, 100 + k, ${slugs.length}) as place
      from generate_series(1, 50000) s, lateral generate_series(1, 13 + (bench.u(s, 6) * 10)::integer) k) picked
    join unnest(${list(slugs)}, ${list(slugs.map(signalCode))}) with ordinality as known (slug, code, place) using (place)
    group by s;
  alter table bench.sets add primary key (id);
  analyze bench.sets`

const id = (prefix: string, of: string) =>
  `'${prefix}_' || substr(md5('${prefix}' || ${of}), 1, 26)`
const text = (kind: string, of: string) =>
  `substring(decode(md5('${kind}' || ${of}), 'hex') from 1 for 12)`
// Each rare value is in one of a million rows.
const rare = (value: string, other: string) =>
  `case when bench.u(i, 30) < 1e-6 then ${value} else ${other} end`
const picked = (values: readonly string[], what: number) =>
  `(${list(values)})[bench.zipf(i, ${what}, ${values.length})]`
const agent = `'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/' || (100 + bench.zipf(i, 40, 40)) || '.0.0.0 Safari/537.36'`

/** SQL over the row number `i` and values drawn once per row: `at`, `v`, `kind` and the set of signals. */
const columns: Record<string, string> = {
  session_id: id('sid', 'i'),
  organization_id: `case when i % 10 = 0 then 'org_00000000000000000000000002' else '${organizationId}' end`,
  environment: `'live'`,
  created_at: 'at',
  client_user_id: `case when bench.u(i, 20) < 0.3 then 'user_' || bench.zipf(i, 21, 2000000) end`,
  event_id: id('evt', 'i'),
  evaluated_at:
    'at + (bench.u(i, 4) * case when bench.u(i, 3) < 0.8 then 60000 else 1800000 end)::bigint',
  evaluation_duration_ms: '3 + (bench.u(i, 22) * 20)::integer',
  verdict: `case when v < 0.75 then 'human' when v < 0.85 then 'inconclusive' else 'bot' end`,
  risk_score:
    'case when v < 0.75 then v * 52 when v < 0.85 then 40 + (v - 0.75) * 290 else 70 + (v - 0.85) * 200 end',
  phase: `'behavioral'`,
  is_provisional: 'bench.u(i, 23) < 0.3',
  visitor_id: id('vid', 'bench.zipf(i, 5, 4000000)'),
  visitor: `'{"id":"vid_0123456789abcdefghjkmnpqrs","confidence":96,"identified_at":' || at || ',"method":"existing","basis":null}'`,
  page_text: text('p', 'bench.zipf(i, 24, 20000)'),
  agent_text: text('a', 'bench.zipf(i, 25, 5000)'),
  address_text: text('i', 'bench.zipf(i, 26, 3000000)'),
  user_text: `case when bench.u(i, 20) < 0.3 then ${text('u', 'bench.zipf(i, 21, 2000000)')} end`,
  key_id: `'key_' || lpad(bench.zipf(i, 27, 5)::text, 26, '0')`,
  scoring_version: `'4'`,
  model: `'tidegate-5'`,
  signals: 'signals',
  signal_points: 'points',
  signal_codes: 'codes',
  attribution: `case when v < 0.9 then '{}'::text[] else array[${rare(`'tool:rare'`, picked(['tool:playwright', 'tool:selenium', 'evasion:stealth'], 29))}] end`,
  page_host: rare(`'rare.example.com'`, `'shop' || bench.zipf(i, 31, 500) || '.example.com'`),
  page_path: `'/products/category-' || bench.zipf(i, 32, 200) || '/item-' || bench.zipf(i, 33, 50000)`,
  referrer_host: `case when bench.u(i, 34) < 0.6 then 'ref' || bench.zipf(i, 35, 3000) || '.example.org' end`,
  country: rare(`'AQ'`, picked(countries.split(' '), 36)),
  asn: rare('4200000001', '1000 + 7 * bench.zipf(i, 37, 20000)'),
  network_holder: `'Network Holder ' || bench.zipf(i, 37, 20000) || ' Ltd'`,
  network: rare(
    `'tor'`,
    `case when kind < 0.86 then 'other' when kind < 0.94 then 'hosting' else 'vpn' end`,
  ),
  ip_address: rare(`'192.0.2.1'`, `'11.0.0.0'::inet + bench.zipf(i, 26, 3000000)`),
  browser: rare(`'Konqueror'`, picked(browsers, 39)),
  browser_version: '100 + bench.zipf(i, 40, 40)',
  os: rare(`'Haiku'`, picked(systems, 41)),
  os_version: '10 + bench.zipf(i, 42, 8)',
  user_agent: agent,
  form_factor: `'desktop'`,
  sdk: `'tidegate-web/0.2.0'`,
  platform: `'web'`,
  has_snapshot: 'true',
  handed_off_at: 'case when bench.u(i, 43) < 0.25 then at + 30000 end',
  repeats: `'{"visitor_sessions":' || bench.zipf(i, 44, 100) || ',"address_sessions":1,"machine_sessions":1,"near_behavior":0}'`,
}

const chunk = 200_000

/**
 * Fills the table with rows in the order of time, of which a tenth is decided anew, so that they do not lie in order.
 */
export async function fillSessions(
  pool: pg.Pool,
  { rows, endsAt }: { rows: number; endsAt: number },
): Promise<void> {
  await pool.query(functions)
  const table = 'sessions_b1.sessions'
  const step = spanMs / rows
  for (let first = 1; first <= rows; first += chunk) {
    const range = [first, Math.min(rows, first + chunk - 1)]
    await pool.query(
      `insert into ${table} (${Object.keys(columns).join()}) select ${Object.values(columns).join()} from (
         select i, signals, points, codes, ${endsAt - spanMs} + (i * ${step})::bigint as at, bench.u(i, 1) as v, bench.u(i, 2) as kind
         from generate_series($1::bigint, $2::bigint) i
         join bench.sets on id = 1 + (hashint8extended(i, 6) & 2147483647) % 50000 offset 0) drawn order by i`,
      range,
    )
    await pool.query(
      `update ${table} set evaluated_at = evaluated_at + (bench.u(i, 51) * 1200000)::bigint
       from generate_series($1::bigint, $2::bigint) i where session_id = ${id('sid', 'i')} and bench.u(i, 50) < 0.1`,
      range,
    )
  }
  await pool.query(`vacuum analyze ${table}`)
}
