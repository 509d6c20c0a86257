import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { transaction } from '../../infra/postgres/pool.ts'
import { sessionFacts } from '../../projections/sessions/facts.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { addAnalyst, defaultHiddenFacts } from '../../projections/sessions/session-facts.ts'
import type { SessionScored } from '../../schemas/events.ts'
import { codeBlock } from '../support/code-block.ts'
import { sessionScored } from '../support/session-scored.ts'
import { recordedSession, useReadModel } from './read-model.ts'
import { id } from './world-events.ts'

const model = await useReadModel(sessionsProjection, recordedSession)
const acme = id('org', 1)
const other = id('org', 2)
const secret = randomBytes(8).toString('hex')
const roles = { everything: `all_${secret}`, acmeOnly: `acme_${secret}` }

/** Returns decision `n`, by default of session `n`. */
function scored(n: number, overrides: Partial<SessionScored> = {}) {
  const ids = { event_id: id('evt', n), session_id: id('sid', n) }
  return { type: 'SessionScored', data: sessionScored({ ...ids, ...overrides }) } as const
}
const hand_off = { challenge_answered: true, input_observed: false, binding: null }
const ofFirst = { session_id: id('sid', 1) }

for (const role of Object.values(roles))
  await model.pool.query(`create role ${role} login password '${secret}'`)
await transaction(model.pool, async (tx) => {
  await addAnalyst(tx, { role: roles.everything, organizationId: null })
  await addAnalyst(tx, { role: roles.acmeOnly, organizationId: acme })
})
afterAll(async () => {
  for (const role of Object.values(roles))
    await model.pool.query(`drop owned by ${role}; drop role ${role}`)
})

async function as<T>(role: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const url = new URL(model.database.url)
  url.username = role
  url.password = secret
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  return work(client).finally(() => client.end())
}

const read = (role: string) =>
  as(role, (client) => client.query('select * from read.session_facts'))

const request = {
  url: 'https://Shop.example/users/4711/orders/8f14e45f-ceea-467f/a%40b.example/summer-sale?token=x',
  referrer: 'https://search.example/?q=x',
  user_agent: 'Mozilla/5.0',
  ip_address: '203.0.113.9',
  screen_size: null,
  is_touch_capable: null,
}

test('facts are taken from the decision, without query strings', () => {
  const base = sessionScored({ request, evaluated_at: 7, manipulation: null })
  const facts = sessionFacts({
    ...base,
    network: {
      ...base.network,
      status: 'ready',
      routing: { asn: 'AS64500', organization: 'Example Hosting' },
      anonymity: { ...base.network.anonymity, hosting: true },
    },
    hand_off: { challenge_answered: true, input_observed: true, binding: null },
  })
  expect(facts).toMatchObject({
    page_host: 'shop.example',
    page_path: '/users/4711/orders/8f14e45f-ceea-467f/a%40b.example/summer-sale',
    referrer_host: 'search.example',
    asn: 64500,
    network: 'hosting',
    signals: ['ua_consistent'],
    signal_points: [4],
    sdk: 'tidegate-web/0.1.0',
    has_snapshot: true,
    handed_off_at: 7,
  })
})

test.each([
  ['ready', 'other'],
  ['skipped', 'unknown'],
] as const)('with status %s, a network that is not listed is %s', (status, kind) => {
  const { network, ...rest } = sessionScored()
  expect(sessionFacts({ ...rest, network: { ...network, status } }).network).toBe(kind)
})

test.each(['', '999.1.1.1', 'fe80::1%eth0', 'unknown'])('"%s" is not an address', (ip_address) => {
  expect(sessionFacts(sessionScored({ request: { ...request, ip_address } })).ip_address).toBeNull()
})

test('a session keeps the time of its hand-off when a look-up copies the evidence', async () => {
  const handedOffAt = async () =>
    (await model.rows('sessions')).map(({ evaluated_at, handed_off_at }) => [
      evaluated_at,
      handed_off_at,
    ])
  await model.given(
    scored(1, { evaluated_at: 1, reason: 'hand_off', hand_off }),
    scored(2, { ...ofFirst, evaluated_at: 2 }),
  )
  expect(await handedOffAt()).toEqual([['2', '1']])
  const lookedUp = { ...ofFirst, evaluated_at: 3, reason: 'looked_up', hand_off } as const
  await model.given(scored(3, lookedUp))
  expect(await handedOffAt()).toEqual([['3', '1']])
})

test('a session keeps the time of its hand-off within a batch', async () => {
  await model.given(
    scored(1, { evaluated_at: 1, reason: 'hand_off', hand_off }),
    scored(2, { ...ofFirst, evaluated_at: 2, reason: 'looked_up', hand_off }),
  )
  expect(await model.rows('sessions')).toMatchObject([{ evaluated_at: '2', handed_off_at: '1' }])
})

const browserOf = (name: string) => ({ ...sessionScored().browser, name })

test('characters that Postgres cannot store are replaced in client texts', async () => {
  const said = { ...request, user_agent: 'a\0"{},\\b' }
  await model.given(scored(1, { browser: browserOf('Chr\0me'), request: said }))
  expect(await model.rows('sessions')).toMatchObject([
    { browser: 'Chr\ufffdme', user_agent: 'a\ufffd"{},\\b' },
  ])
})

test.each([
  ['Google Chrome', 'Chrome'],
  ['Chrome', 'Chrome'],
  ['Microsoft Edge', 'Edge'],
  ['Samsung Internet', 'Samsung Internet'],
])('the browser %s is stored as %s', (name, browser) => {
  expect(sessionFacts(sessionScored({ browser: browserOf(name) })).browser).toBe(browser)
})

test("an analyst sees the columns that the organization's policy allows", async () => {
  await model.given(scored(1, { request }))
  const look = async () => (await read(roles.everything)).rows[0]
  expect(await look()).toMatchObject({
    evaluated_at: new Date(sessionScored().evaluated_at),
    page_path: '/users/*/orders/*/*/summer-sale',
    ip_address: null,
    client_user_id: null,
    user_agent: null,
    page_host: 'shop.example',
  })

  await setHidden([])
  expect(await look()).toMatchObject({
    page_path: '/users/4711/orders/8f14e45f-ceea-467f/a%40b.example/summer-sale',
    ip_address: request.ip_address,
    user_agent: request.user_agent,
  })
  await setHidden(['page_host', 'signals'])
  expect(await look()).toMatchObject({
    page_host: null,
    signals: null,
    ip_address: request.ip_address,
  })
  await model.pool.query('delete from read.data_policies')
})

function setHidden(columns: string[]): Promise<unknown> {
  return model.pool.query(
    `insert into read.data_policies (organization_id, shortens_addresses, allows_minimal_mode, changed_at,
       hidden_facts, facts_topic) values ($1, false, false, 0, $2, false)
     on conflict (organization_id) do update set hidden_facts = excluded.hidden_facts`,
    [acme, columns],
  )
}

test('an analyst reads the rows of granted organizations, and no other relation', async () => {
  await model.given(scored(1), scored(2, { organization_id: other }))
  const sessionsOf = async (role: string) =>
    (await read(role)).rows.map(({ session_id }) => session_id).toSorted()
  expect(await sessionsOf(roles.everything)).toEqual([id('sid', 1), id('sid', 2)])
  expect(await sessionsOf(roles.acmeOnly)).toEqual([id('sid', 1)])

  const { rows: relations } = await model.pool.query<{ name: string }>(
    `select format('%I.%I', nspname, relname) as name from pg_class join pg_namespace n on n.oid = relnamespace
     where relkind in ('r', 'v', 'm', 'p') and nspname !~ '^(pg_|information_schema)'`,
  )
  const others = relations.map(({ name }) => name).filter((name) => name !== 'read.session_facts')
  expect(others.length).toBeGreaterThan(40)
  const readable = await as(roles.acmeOnly, async (client) => {
    const found: string[] = []
    for (const name of others)
      await client.query(`select from ${name} limit 1`).then(
        () => found.push(name),
        () => {},
      )
    return found
  })
  expect(readable).toEqual([])
})

test('a grant of one organization replaces a grant of all', async () => {
  await model.given(scored(1, { organization_id: other }))
  const give = (organizationId: string | null) =>
    transaction(model.pool, (tx) => addAnalyst(tx, { role: roles.acmeOnly, organizationId }))
  const count = async () => (await read(roles.acmeOnly)).rowCount
  expect(await count()).toBe(0)
  await give(null)
  expect(await count()).toBe(1)
  await give(acme)
  expect(await count()).toBe(0)
})

test('docs/reference/session-facts.md lists all columns and the default hidden ones, and its query runs', async () => {
  const page = readFileSync(
    new URL('../../docs/reference/session-facts.md', import.meta.url),
    'utf8',
  )
  const described = page
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name))
  const { rows } = await model.pool.query<{ name: string }>(
    `select column_name as name from information_schema.columns
     where table_schema = 'read' and table_name = 'session_facts'`,
  )
  expect(described.toSorted()).toEqual(rows.map(({ name }) => name).toSorted())
  for (const name of defaultHiddenFacts) expect(page).toContain(`\`${name}\``)
  await model.pool.query(await codeBlock('reference/session-facts.md', 'session-facts.sql'))
})
