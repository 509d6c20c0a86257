import pg from 'pg'
import type { Migrations } from '../../infra/postgres/migrations.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { factNames, type SessionFacts } from './facts.ts'

/** Columns that an organization can hide from analysts. Hiding `page_path` masks only segments that look like ids. */
export type HideableFact =
  | Exclude<keyof SessionFacts, 'scoring_version'>
  | 'client_user_id'
  | 'visitor_id'
export const hideableFacts: readonly HideableFact[] = [
  'client_user_id',
  'visitor_id',
  ...factNames.filter((name) => name !== 'scoring_version'),
]

/** Columns hidden by the default policy. */
export const defaultHiddenFacts: readonly HideableFact[] = [
  'ip_address',
  'client_user_id',
  'user_agent',
  'page_path',
]

const alwaysVisible = [
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

/** Columns of `read.session_facts`, which also has `evaluated_at_ms`. */
export const sessionFactNames: readonly string[] = [
  ...alwaysVisible,
  ...factTimes,
  ...hideableFacts.filter((name) => !factTimes.includes(name)),
]

/**
 * Returns the select of the view, which shows the rows of the organizations granted to the database role, with null in
 * hidden columns. Roles that can read `tidegate.analysts`, such as the server's and the owner's, see all rows. Add new
 * columns at the end, so that Postgres can replace the view and keep its grants.
 */
export function sessionFactsView(schema: string): string {
  return `select ${columnsAs(maskedSql)} from ${schema}.sessions s
    left join tidegate.hidden_facts() as policy on policy.organization_id = s.organization_id
    cross join lateral (select coalesce(policy.hidden, ${arrayOf(defaultHiddenFacts)}) as columns) as hidden
    where (select has_table_privilege(current_user, 'tidegate.analysts'::regclass, 'select')
        or exists (select from tidegate.analysts where organization_id = '' and ${isReader}))
      or s.organization_id in (select organization_id from tidegate.analysts where ${isReader})`
}

/** Returns a select of all rows that also shows hidden columns. */
export const unrestrictedSessionFacts = (schema: string): string =>
  `select ${columnsAs((_name, sql) => sql)} from ${schema}.sessions s`

function columnsAs(maskSql: (name: string, sql: string) => string): string {
  const columns = [
    ...alwaysVisible.map((name) => `s.${name}`),
    ...factTimes.map((name) => `${maskSql(name, `to_timestamp(s.${name} / 1000.0)`)} as ${name}`),
    's.evaluated_at as evaluated_at_ms',
    ...hideableFacts
      .filter((name) => !factTimes.includes(name))
      .map((name) => `${maskSql(name, sqlOf(name))} as ${name}`),
  ]
  return columns.join(', ')
}

const isReader = `role in (select rolname from pg_roles where pg_has_role(current_user, oid, 'member'))`
const arrayOf = (names: readonly string[]) => `array[${names.map((name) => `'${name}'`).join()}]`
const sqlOf = (name: HideableFact) => (name === 'repeats' ? 's.repeats::json' : `s.${name}`)

function maskedSql(name: string, sql: string): string {
  if (!hideableFacts.some((hideable) => hideable === name)) return sql
  const mask = name === 'page_path' ? maskedPath('s.page_path') : 'null'
  return `case when '${name}' = any(hidden.columns) then ${mask} else ${sql} end`
}

/**
 * Returns SQL that replaces segments of a path that look like ids with `*`: numbers, segments with an at sign, with
 * eight or more hexadecimal digits or hyphens, or with sixteen or more characters including a digit.
 */
const maskedPath = (path: string): string =>
  `regexp_replace(${path}, '/(?:\\d+|[^/]*(?:@|%40)[^/]*|[0-9a-f-]{8,}|(?=[^/]*\\d)[^/]{16,})(?=/|$)', '/*', 'gi')`

/** Table of organizations granted to database roles. An empty organization id stands for all. */
export const analystsMigrations: Migrations = {
  name: 'analysts',
  // PL/pgSQL resolves names at run time, so the view does not depend on a build of the policies projection.
  create: `create table tidegate.analysts (
      role text not null, organization_id text not null, primary key (role, organization_id)
    );
    create function tidegate.hidden_facts() returns table (organization_id text, hidden text[])
      language plpgsql stable security definer set search_path = pg_catalog as $$
      begin
        return query select p.organization_id, p.hidden_facts from read.data_policies p;
      end $$`,
}

/** Grants an existing database role the view's rows of one more organization, or of all if `organizationId` is null. */
export async function addAnalyst(
  tx: Tx,
  { role, organizationId }: { role: string; organizationId: string | null },
): Promise<void> {
  const id = pg.escapeIdentifier(role)
  await tx.query(`grant usage on schema read to ${id}; grant select on read.session_facts to ${id}`)
  // A grant of all organizations replaces grants of single ones, and vice versa.
  await tx.query(
    `delete from tidegate.analysts where role = $1 and ($2 = '' or organization_id = '')`,
    [role, organizationId ?? ''],
  )
  await tx.query('insert into tidegate.analysts values ($1, $2) on conflict do nothing', [
    role,
    organizationId ?? '',
  ])
}
