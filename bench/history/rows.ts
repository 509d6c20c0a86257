import type pg from 'pg'
import { signalCode } from '../../projections/sessions/signal-codes.ts'
import { signalCatalogue } from '../../services/scoring/signals/catalogue.ts'

/** All values derive from the seed and the row number. */
const seed = 36
const dayMs = 24 * 60 * 60 * 1000
export const spanMs = 30 * dayMs
const organizationId = 'org_00000000000000000000000001'
const otherOrganizationId = 'org_00000000000000000000000002'
const schema = 'sessions_b1'

const countries =
  'US DE GB FR IN BR CA JP NL ES IT AU PL SE MX KR TR ID AR CH BE AT CZ DK NO FI PT IE RO HU GR IL UA ZA SG HK NZ MY TH PH VN TW CL CO PE EG NG KE MA SA AE PK BD LK KZ RS BG HR SK SI'
const browsers =
  'Chrome|Safari|Edge|Firefox|Samsung Internet|Opera|Brave|Vivaldi|DuckDuckGo|UC Browser|Yandex|Chromium'
const systems = 'Windows|iOS|Android|macOS|Linux|ChromeOS'
const hosts = 'shop.example.com|www.example.com|account.example.com|m.example.com|help.example.com'
const pages = 'login|signup|checkout|search|cart|account|contact|password|offers|reviews'
const tools =
  'tool:playwright|tool:selenium|tool:puppeteer|tool:headless_chrome|evasion:stealth|tool:curl'
/** Values of the page's query. */
const references = 50
const list = (values: string) =>
  `array[${values
    .split(/[| ]/)
    .map((value) => `'${value}'`)
    .join()}]`

// Signals of each verdict, the most frequent first. The rest of a set is drawn from the catalogue.
const usualSignals = {
  human:
    'fresh_proofs browser_profile_consistent natural_pointer_movement natural_typing returning_visitor_fingerprint natural_touch privacy_hardening_indicators stale_snapshot accept_language_mismatch languages_mismatch',
  inconclusive:
    'fresh_proofs browser_profile_consistent velocity_address engine_unproven app_unattested native_checks_missing lone_click replayed_snapshot vpn_associated_ip utc_timezone',
  bot: 'fresh_proofs webdriver_detected exact_center_clicks clicks_without_movement instant_key_presses uniform_typing superhuman_typing instant_submit cdp_driven_input developer_tools_detected',
}
const setsPerVerdict = 10_000

/** `u` is uniform from 0 to 1. With `zipf`, the first value is the most frequent; `skewed` has no extreme values. */
const functions = `create schema if not exists bench;
  create or replace function bench.u(i bigint, what integer) returns float8 language sql immutable parallel safe as
    $$ select (hashint8extended(i, what + ${seed * 1000}) & 9007199254740991)::float8 / 9007199254740992 $$;
  create or replace function bench.zipf(i bigint, what integer, n integer) returns integer language sql immutable parallel safe as
    $$ select floor(exp(bench.u(i, what) * ln(n + 1)))::integer $$;
  create or replace function bench.skewed(i bigint, what integer, n integer) returns integer language sql immutable parallel safe as
    $$ select floor(n * bench.u(i, what) ^ 2)::integer $$;
  create or replace function bench.text_id(organization text, value text) returns bytea language sql immutable parallel safe as
    $$ select substring(sha256(convert_to(organization, 'UTF8') || '\\x00'::bytea || 'live'::bytea || '\\x00'::bytea ||
      convert_to(lower(value), 'UTF8')) from 1 for 12) $$;
  drop table if exists bench.sets;
  create table bench.sets (verdict text, place integer, signals text[], points integer[], codes text collate "C");
  ${Object.entries(usualSignals)
    .map(([verdict, usual], i) => setsSql(verdict, usual, i * setsPerVerdict))
    .join(';')};
  alter table bench.sets add primary key (verdict, place);
  analyze bench.sets`

function setsSql(verdict: string, usual: string, first: number): string {
  const slugs = signalCatalogue.map(({ slug }) => slug)
  const [all, codes] = [list(slugs.join(' ')), list(slugs.map(signalCode).join(' '))]
  return `insert into bench.sets
    select '${verdict}', s - ${first}, array_agg(slug order by slug), array_agg(5 + length(slug) order by slug),
      string_agg(code, '' order by slug)
    from (
      select s, slug from generate_series(${first + 1}, ${first + setsPerVerdict}) s,
        unnest(${list(usual)}) with ordinality as usual (slug, k) where bench.u(s, k::integer) < 1.1 - 0.08 * k
      union select s, (${all})[1 + floor(bench.u(s, 100 + k) * ${slugs.length})::integer] from generate_series(${first + 1}, ${first + setsPerVerdict}) s,
        generate_series(1, (bench.u(s, 60) * ${verdict === 'bot' ? 4 : 2})::integer) k
    ) picked join unnest(${all}, ${codes}) as known (slug, code) using (slug) group by s`
}

const id = (prefix: string, of: string) =>
  `'${prefix}_' || substr(md5('${prefix}' || ${of}), 1, 26)`
// Real session ids begin with their time, so that new ones are neighbors in the index.
const sessionId = `'sid_01' || lpad(to_hex(at), 11, '0') || substr(md5(i::text), 1, 13)`
// Each rare value is in one of a million rows.
const rare = (value: string, other: string) =>
  `case when bench.u(i, 30) < 1e-6 then ${value} else ${other} end`
const picked = (values: string, i: string, what: number) =>
  `(${list(values)})[bench.zipf(${i}, ${what}, ${values.split(/[| ]/).length})]`

// A visitor `w` keeps the browser, the address and the user.
const drawn = {
  org: 'org',
  w: 'bench.skewed(i, 5, visitors)',
  at: 'at',
  v: 'case when is_wave then 0.97 else bench.u(i, 1) end',
  kind: 'bench.u(i, 2)',
  page: `'/' || ${picked(pages, 'i', 32)} || case when bench.u(i, 33) < 0.4 then '' else '/' || bench.zipf(i, 34, 20) end`,
  host: rare(`'rare.example.com'`, picked(hosts, 'i', 31)),
  query: `case when bench.u(i, 35) < 0.2 then '?ref=' || bench.skewed(i, 36, ${references}) else '' end`,
}
const ofVisitor = {
  address: rare(`'192.0.2.1'`, `host('11.0.0.0'::inet + (w * 7 + (bench.u(i, 26) * 3)::integer))`),
  browser: rare(`'Konqueror'`, picked(browsers, 'w', 39)),
  browser_version: '120 + bench.zipf(w, 40, 40)',
  os: rare(`'Haiku'`, picked(systems, 'w', 41)),
  verdict: `case when v < 0.88 then 'human' when v < 0.96 then 'inconclusive' else 'bot' end`,
  usr: `case when bench.u(w, 20) < 0.3 then 'user_' || w end`,
}
const agent = `'Mozilla/5.0 (' || os || '; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) ' || browser || '/' || browser_version || '.0.0.0 Safari/537.36'`
const counted = (n: string) => `'{"five_minutes":1,"hour":' || ${n} || ',"day":' || ${n} || '}'`

const columns: Record<string, string> = {
  session_id: sessionId,
  organization_id: 'org',
  environment: `'live'`,
  created_at: 'at',
  client_user_id: 'usr',
  event_id: id('evt', 'i'),
  evaluated_at:
    'at + (least(ends - at, case when bench.u(i, 3) < 0.8 then 60000 else 1800000 end) * bench.u(i, 4))::bigint',
  evaluation_duration_ms: '3 + (bench.u(i, 22) * 20)::integer',
  verdict: 'd.verdict',
  risk_score:
    'case when v < 0.88 then v * 44 when v < 0.96 then 40 + (v - 0.88) * 370 else 70 + (v - 0.96) * 750 end',
  phase: `'behavioral'`,
  is_provisional: 'bench.u(i, 23) < 0.1',
  visitor_id: id('vid', 'w'),
  visitor: `'{"id":"' || ${id('vid', 'w')} || '","confidence":96,"identified_at":' || at || ',"method":"existing","basis":null}'`,
  manipulation: `'{"score":0,"verdict":"none"}'`,
  page_text: `bench.text_id(org, 'https://' || host || page || query)`,
  agent_text: `bench.text_id(org, ${agent})`,
  address_text: 'bench.text_id(org, address)',
  user_text: 'case when usr is not null then bench.text_id(org, usr) end',
  key_id: `'key_' || lpad(bench.zipf(i, 27, 5)::text, 26, '0')`,
  mark: `case when bench.u(i, 47) < 0.001 then case when v < 0.9 then 'human' else 'bot' end end`,
  mark_id: `case when bench.u(i, 47) < 0.001 then ${id('mrk', 'i')} end`,
  marked_at: `case when bench.u(i, 47) < 0.001 then at + 60000 end`,
  scoring_version: `'6'`,
  model: `'tidegate-6'`,
  signals: 'signals',
  signal_points: 'points',
  signal_codes: 'codes',
  attribution: `case when v < 0.96 then '{}'::text[] else array['actor:automation', ${rare(`'tool:rare'`, picked(tools, 'i', 29))}] end`,
  page_host: 'host',
  page_path: 'page',
  referrer_host: `case when bench.u(i, 37) < 0.6 then 'ref' || bench.zipf(i, 38, 3000) || '.example.org' end`,
  country: rare(`'AQ'`, picked(countries, 'w', 42)),
  asn: rare('4200000001', '1000 + 7 * bench.zipf(w, 43, 500)'),
  network_holder: `'Network Holder ' || bench.zipf(w, 43, 500) || ' Ltd'`,
  network: rare(
    `'tor'`,
    `case when v > 0.96 and kind < 0.6 or kind > 0.97 then 'hosting' when kind > 0.92 then 'vpn' else 'other' end`,
  ),
  ip_address: 'address::inet',
  browser: 'browser',
  browser_version: 'browser_version',
  os: 'os',
  os_version: '10 + bench.zipf(w, 44, 8)',
  user_agent: agent,
  form_factor: `'desktop'`,
  sdk: `'tidegate-web/1.0.0'`,
  platform: `'web'`,
  has_snapshot: 'true',
  handed_off_at: 'case when bench.u(i, 45) < 0.6 then at + 30000 end',
  repeats: `'{"address_sessions":' || ${counted('bench.zipf(i, 46, 100)')} || ',"network_sessions":' || ${counted('40')} || ',"visitor_sessions":' ||
    ${counted('2')} || ',"snapshot_sessions":' || ${counted('1')} || ',"behavior_sessions":' || ${counted('0')} || ',"address_visitors":' ||
    ${counted('3')} || ',"visitor_addresses":' || ${counted('1')} || ',"visitor_users":' || ${counted('1')} || ',"user_visitors":' || ${counted('1')} || '}'`,
  agent_status: `case when v > 0.995 then 'verified' when v > 0.992 then 'spoofed' else 'none' end`,
  agent_provider: `case when v > 0.992 then ${picked('google|openai|bing|anthropic', 'i', 48)} end`,
}

const selected = (values: Record<string, string>) =>
  Object.entries(values)
    .map(([name, sql]) => `${sql} as ${name}`)
    .join(', ')

const chunk = 100_000

export interface FillOptions {
  rows: number
  endsAt: number
  /** Organization of nine in ten sessions. */
  organization?: string | undefined
  /** Number of the first row, to continue an earlier fill. */
  first?: number
}

/** Inserts sessions in the order of time, with more of them by day than by night and a wave of bots in the last hours. */
export async function fillSessions(
  pool: pg.Pool,
  { rows, endsAt, organization = organizationId, first = 1 }: FillOptions,
): Promise<void> {
  await pool.query(functions)
  const step = spanMs / rows
  const [wave, begin] = [endsAt - dayMs / 12, endsAt - spanMs]
  const time = `${begin} + (i * ${step})`
  // Most sessions are at 14:00 UTC. Without its value at the end, the swing would move the last ones into the future.
  const swing = (at: string | number) => `sin(2 * pi() * (${at} - ${(14 * dayMs) / 24}) / ${dayMs})`
  const insert = `insert into ${schema}.sessions (${Object.keys(columns).join()})
    select ${Object.values(columns).join()} from (
      select i, ends, ${Object.keys(drawn).join()}, ${selected(ofVisitor)} from (
        select i, ends, ${selected(drawn)} from (
          select *, bench.u(i, 50) < 0.15 and at between ${wave} and ${wave + dayMs / 48} as is_wave from (
            select i, ${endsAt}::bigint as ends, ${Math.ceil(rows * 0.4)} as visitors,
              case when i % 10 = 0 then '${otherOrganizationId}' else '${organization}' end as org,
              (${time} - ${(0.6 * dayMs) / (2 * Math.PI)} * (${swing(time)} - ${swing(endsAt)}))::bigint as at
            from generate_series($1::bigint, $2::bigint) i offset 0
          ) timed offset 0
        ) numbered offset 0
      ) visited offset 0
    ) d join bench.sets on sets.verdict = d.verdict and sets.place = 1 + (hashint8extended(i, 6) & 2147483647) % ${setsPerVerdict}`
  const starts = Array.from({ length: Math.ceil(rows / chunk) }, (_, k) => first + k * chunk)
  async function work(): Promise<void> {
    for (let start = starts.shift(); start !== undefined; start = starts.shift())
      await pool.query(insert, [start, Math.min(first + rows, start + chunk) - 1])
  }
  await fillTable(pool, 'sessions', () => Promise.all([work(), work()]))
}

// Fills a table without its indexes, because creating them afterwards takes a tenth of the time.
async function fillTable(
  pool: pg.Pool,
  name: 'sessions' | 'visitors' | 'search_texts' | 'decisions',
  fill: (client: pg.PoolClient) => Promise<unknown>,
): Promise<void> {
  const table = `${schema}.${name}`
  const begun = performance.now()
  const client = await pool.connect()
  try {
    await client.query(`set work_mem = '1GB'; set maintenance_work_mem = '1GB'`)
    await client.query(`alter table ${table} set unlogged, set (autovacuum_enabled = off)`)
    const { rows } = await client.query<{ name: string; definition: string }>(
      `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index
       where indrelid = $1::regclass and not indisprimary`,
      [table],
    )
    for (const { name } of rows) await client.query(`drop index ${name}`)
    await fill(client)
    for (const { definition } of rows) await client.query(definition)
    await client.query(`vacuum analyze ${table}`)
    console.log(`filled ${name} in ${((performance.now() - begun) / 1000).toFixed(0)} s`)
  } finally {
    client.release(true)
  }
}

/** Adds the visitors and search texts of all sessions, and decisions of the newest ones. */
export async function fillRelated(pool: pg.Pool, decided: number): Promise<void> {
  await pool.query(`create table if not exists bench.events as
    select row_number() over (partition by verdict) as place, count(*) over (partition by verdict) as n, verdict, event
    from ${schema}.decisions`)
  const selects = {
    visitors: `select organization_id, environment, visitor_id, min(created_at), max(evaluated_at), count(*), max(event_id),
        max(evaluated_at), any_value(user_agent), any_value(host(ip_address)),
        '{"cookies":true,"local_storage":true,"indexed_db":true,"service_worker":false,"window_name":false}',
        '{"webgl_hash":null,"parameters_hash":null,"audio_hash":null}',
        '[0.52,0.037,-1,0.38,0.25,0.58,0.93,0.96,0.64,-1,-1,-1,-1,-1,-1,-1,-1,-1]', any_value(agent_text), any_value(address_text)
      from ${schema}.sessions group by 1, 2, 3 order by 1, 2, 3`,
    search_texts: `select bench.text_id(org, text), org, 'live', text from (
        select distinct organization_id as org, lower(user_agent) as text from ${schema}.sessions
        union all select distinct organization_id, host(ip_address) from ${schema}.sessions
        union all select distinct organization_id, client_user_id from ${schema}.sessions where client_user_id is not null
        union all select org, 'https://' || host || '/' || page || rest || query
        from (select distinct organization_id from ${schema}.sessions) o (org), unnest(${list(hosts)}) host, unnest(${list(pages)}) page,
          (select '' union all select '/' || k from generate_series(1, 20) k) r (rest),
          (select '' union all select '?ref=' || k from generate_series(0, ${references - 1}) k) q (query)
      ) texts order by 1`,
    decisions: `select s.event_id, s.session_id, s.organization_id, s.environment, s.visitor_id, 0, 1000000 + row_number() over (),
        s.created_at, s.evaluated_at, s.evaluation_duration_ms, s.verdict, s.risk_score, s.phase, s.is_provisional, s.manipulation, e.event
      from (select * from ${schema}.sessions order by session_id desc limit ${decided}) s
      join bench.events e on e.verdict = s.verdict and e.place = 1 + (hashtextextended(s.session_id, 7) & 2147483647) % e.n`,
  }
  for (const name of ['visitors', 'search_texts', 'decisions'] as const)
    await fillTable(pool, name, (client) =>
      client.query(`insert into ${schema}.${name} ${selects[name]} on conflict do nothing`),
    )
}
