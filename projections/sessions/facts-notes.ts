// Change capture for the facts topic, which publishes the rows of sessions. While capture is on for an organization
// (`is_noted`), triggers enqueue each changed or deleted row in the outbox (`facts_notes`), in the same transaction.
// services/facts publishes the entries.
import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import { column, constrained, nullable, primaryKey, table } from '../../infra/postgres/table.ts'

/** Backfill state of organizations that have or had the facts topic. */
export const factsOrganizations = table('tidegate.facts_organizations', {
  organization_id: primaryKey(column.id()),
  /** Policy of the last backfill: the hidden columns, or `off`. */
  policy: column.text(),
  /** Backfill cursor: sessions up to this one are enqueued; null = finished. */
  noted_up_to: nullable(column.id()),
  /** True while change capture is on. */
  is_noted: column.boolean(),
})

/** Outbox of the facts topic: one entry per change of a session's row, in no order. */
export const factsOutbox = table(
  'tidegate.facts_notes',
  {
    /** Epoch milliseconds; 0 = due at once. */
    due_at: constrained(column.bigint(), 'default 0'),
    id: constrained(column.bigint(), 'generated always as identity'),
    session_id: column.id(),
    /** True if a tombstone was published once and is due a second time. */
    is_repeat: constrained(column.boolean(), 'default false'),
  },
  { key: ['due_at', 'id'] },
)

// Triggers see every change of a row, in its transaction. Only changes of the live build are enqueued. Since triggers
// are expensive, a transaction turns them off with `captureSetting` if no organization has capture on.
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

/** SQL that turns the triggers on or off for the transaction. Without it they are on. */
export const captureSetting = `set_config('tidegate.notes', case when exists (
  select from tidegate.facts_organizations where is_noted
) then 'on' else 'off' end, true)`

export const factsMigrations: Migrations = {
  name: 'facts',
  create: ddlOf(factsOrganizations, factsOutbox) + captureFunction,
}

/** DDL that is run after a rebuild has loaded its rows, so that the load does not fire the triggers. */
export const factsTriggers = (['insert', 'update', 'delete'] as const)
  .map(
    (change) => `
  create trigger note_${change} after ${change} on sessions
    referencing ${change === 'delete' ? 'old' : 'new'} table as changed
    for each statement when (current_setting('tidegate.notes', true) is distinct from 'off')
    execute function tidegate.note_facts();`,
  )
  .join('')
