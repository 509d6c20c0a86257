// Change capture for the facts topic, which publishes the rows of `sessions`. While an organization's capture is on,
// triggers enqueue every changed or deleted row in the outbox, and services/facts publishes the entries.
import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import { column, constrained, nullable, primaryKey, table } from '../../infra/postgres/table.ts'

/** Backfill state of organizations that have or had the facts topic. */
export const factsOrganizations = table('tidegate.facts_organizations', {
  organization_id: primaryKey(column.id()),
  /** Policy at the last backfill: the hidden columns, or `off`. */
  policy: column.text(),
  /** Backfill cursor: id of the last session that was enqueued; null = finished. */
  noted_up_to: nullable(column.id()),
  /** True while change capture is on. */
  is_noted: column.boolean(),
})

/** Outbox of the facts topic: one entry per change of a session's row, in no particular order. */
export const factsOutbox = table(
  'tidegate.facts_notes',
  {
    /** Epoch milliseconds; 0 = due at once. */
    due_at: constrained(column.bigint(), 'default 0'),
    id: constrained(column.bigint(), 'generated always as identity'),
    session_id: column.id(),
    /** True if this entry is the second tombstone of a deleted row. */
    is_repeat: constrained(column.boolean(), 'default false'),
  },
  { key: ['due_at', 'id'] },
)

// Enqueues changes in the transaction that makes them, only in the live build. Triggers are expensive, so a transaction
// disables them with `captureSetting` unless an organization has capture on.
const captureFunction = `
create function tidegate.note_facts() returns trigger language plpgsql as $$
begin
  insert into tidegate.facts_notes (session_id) select session_id
    from changed join tidegate.facts_organizations using (organization_id)
    where is_noted and exists (
      select from tidegate.projection_builds where schema_name = tg_table_schema and status = 'live'
    );
  return null;
end $$;
`

/** SQL that disables the triggers for the transaction if no organization has capture on. */
export const captureSetting = `set_config('tidegate.notes', case when exists (
  select from tidegate.facts_organizations where is_noted
) then 'on' else 'off' end, true)`

export const factsMigrations: Migrations = {
  name: 'facts',
  create: ddlOf(factsOrganizations, factsOutbox) + captureFunction,
}

/** DDL of the triggers. A rebuild runs it after loading its rows, so that loading does not fire them. */
export const factsTriggers = (['insert', 'update', 'delete'] as const)
  .map(
    (change) => `
  create trigger note_${change} after ${change} on sessions
    referencing ${change === 'delete' ? 'old' : 'new'} table as changed
    for each statement when (current_setting('tidegate.notes', true) is distinct from 'off')
    execute function tidegate.note_facts();`,
  )
  .join('')
