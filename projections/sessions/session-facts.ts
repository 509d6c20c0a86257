import pg from 'pg'
import type { Migrations } from '../../infra/postgres/migrations.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { factNames, type SessionFacts } from './facts.ts'

/** Columns that an organization can keep back from analysts. Of the page's path only what looks like an id is kept back. */
export type HideableFact =
  | Exclude<keyof SessionFacts, 'scoring_version'>
  | 'client_user_id'
  | 'visitor_id'
export const hideableFacts: readonly HideableFact[] = [
  'client_user_id',
  'visitor_id',
  ...factNames.filter((name) => name !== 'scoring_version'),
]

/** What is kept back where the organization's policy does not say otherwise. */
export const defaultHidden: readonly HideableFact[] = [
  'ip_address',
  'client_user_id',
  'user_agent',
  'page_path',
]

const visible = [
  'session_id',
  'organization_id',
  'environment',
  'event_id',
  'verdict',
  'risk_score',
  'phase',
  'is_provisional',
  'key_id',
  'mark_id',
  'mark',
  'mark_reason',
  'scoring_version',
]
export const factTimes = ['created_at', 'evaluated_at', 'handed_off_at', 'marked_at']

/** The columns of `read.session_facts`, which has `evaluated_at` as a number, too. */
export const sessionFactNames: readonly string[] = [
  ...visible,
  ...factTimes,
  ...hideableFacts.filter((name) => !factTimes.includes(name)),
]

/**
 * The flat rows without what their organizations keep back, of the organizations that the reader was given. Whoever may
 * read the list of analysts, as servers and the owner may, sees all. Later columns come last: then Postgres replaces the
 * view, and rights on it stay.
 */
export function sessionFactsView(schema: string): string {
  return `select ${columnsAs(hiding)} from ${schema}.sessions s
    left join tidegate.hidden_facts() as policy on policy.organization_id = s.organization_id
    cross join lateral (select coalesce(policy.hidden, ${arrayOf(defaultHidden)}) as columns) as hidden
    where (select has_table_privilege(current_user, 'tidegate.analysts'::regclass, 'select')
        or exists (select from tidegate.analysts where organization_id = '' and ${isReader}))
      or s.organization_id in (select organization_id from tidegate.analysts where ${isReader})`
}

/** The same rows, with what organizations keep back. */
export const openedSessionFacts = (schema: string): string =>
  `select ${columnsAs((_name, sql) => sql)} from ${schema}.sessions s`

function columnsAs(visibleAs: (name: string, sql: string) => string): string {
  const columns = [
    ...visible.map((name) => `s.${name}`),
    ...factTimes.map((name) => `${visibleAs(name, `to_timestamp(s.${name} / 1000.0)`)} as ${name}`),
    's.evaluated_at as evaluated_at_ms',
    ...hideableFacts
      .filter((name) => !factTimes.includes(name))
      .map((name) => `${visibleAs(name, sqlOf(name))} as ${name}`),
  ]
  return columns.join(', ')
}

const isReader = `role in (select rolname from pg_roles where pg_has_role(current_user, oid, 'member'))`
const arrayOf = (names: readonly string[]) => `array[${names.map((name) => `'${name}'`).join()}]`
const sqlOf = (name: HideableFact) => (name === 'repeats' ? 's.repeats::json' : `s.${name}`)

function hiding(name: string, sql: string): string {
  if (!hideableFacts.some((one) => one === name)) return sql
  const instead = name === 'page_path' ? maskedPath('s.page_path') : 'null'
  return `case when '${name}' = any(hidden.columns) then ${instead} else ${sql} end`
}

/**
 * SQL: the path with `*` for segments that look like ids: numbers, those with an at sign, eight or more hexadecimal
 * digits, and sixteen or more characters of which one is a digit.
 */
const maskedPath = (path: string): string =>
  `regexp_replace(${path}, '/(?:\\d+|[^/]*(?:@|%40)[^/]*|[0-9a-f-]{8,}|(?=[^/]*\\d)[^/]{16,})(?=/|$)', '/*', 'gi')`

/** Whose rows a database role may read of the view. An empty organization is every one. */
export const analystsMigrations: Migrations = {
  name: 'analysts',
  // The function's body is looked up when it runs, so that the view depends on no build of the policies.
  create: `create table tidegate.analysts (
      role text not null, organization_id text not null, primary key (role, organization_id)
    );
    create function tidegate.hidden_facts() returns table (organization_id text, hidden text[])
      language plpgsql stable security definer set search_path = pg_catalog as $$
      begin
        return query select p.organization_id, p.hidden_facts from read.data_policies p;
      end $$`,
}

/**
 * Lets an existing database role read the view and nothing else: of one organization beside those that it was given
 * before, or of all (null).
 */
export async function addAnalyst(
  tx: Tx,
  { role, organizationId }: { role: string; organizationId: string | null },
): Promise<void> {
  const to = pg.escapeIdentifier(role)
  await tx.query(`grant usage on schema read to ${to}; grant select on read.session_facts to ${to}`)
  // All includes each, and who is given one organization is not to go on with all.
  await tx.query(
    `delete from tidegate.analysts where role = $1 and ($2 = '' or organization_id = '')`,
    [role, organizationId ?? ''],
  )
  await tx.query('insert into tidegate.analysts values ($1, $2) on conflict do nothing', [
    role,
    organizationId ?? '',
  ])
}
