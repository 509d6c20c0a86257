import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import { column, constrained, nullable, primaryKey, table } from '../../infra/postgres/table.ts'

/** Organizations whose rows are, or were, on the topic of facts. */
export const factsOrganizations = table('tidegate.facts_organizations', {
  organization_id: primaryKey(column.id()),
  /** What the rows were noted under last: the columns kept back, or `off`. */
  policy: column.text(),
  /** All rows up to this session are noted; null = all. */
  noted_up_to: nullable(column.id()),
  /** Whether changes of its rows are noted. */
  is_noted: column.boolean(),
})

/** Sessions whose rows were changed or deleted since they were published: one for each change, in no order. */
export const factsNotes = table(
  'tidegate.facts_notes',
  {
    /** Epoch milliseconds; 0 = at once. */
    due_at: constrained(column.bigint(), 'default 0'),
    id: constrained(column.bigint(), 'generated always as identity'),
    session_id: column.id(),
    /** That the session has no row was published before. */
    is_repeat: constrained(column.boolean(), 'default false'),
  },
  { key: ['due_at', 'id'] },
)

// A trigger sees every way in which rows change, in the transaction that changes them. It costs too much where no
// organization has the topic: who applies events asks once, under the build's lock, and says so in a setting of its
// transaction. A build that is no reader's is noted by none of its changes.
const noteChanged = `
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

/** Whether changes are noted in this transaction. Without it they are. */
export const notesSetting = `set_config('tidegate.notes', case when exists (
  select from tidegate.facts_organizations where is_noted
) then 'on' else 'off' end, true)`

export const factsMigrations: Migrations = {
  name: 'facts',
  create: ddlOf(factsOrganizations, factsNotes) + noteChanged,
}

/** Made after the load of a rebuild, which would only pay for them. */
export const factsTriggers = (['insert', 'update', 'delete'] as const)
  .map(
    (change) => `
  create trigger note_${change} after ${change} on sessions
    referencing ${change === 'delete' ? 'old' : 'new'} table as changed
    for each statement when (current_setting('tidegate.notes', true) is distinct from 'off')
    execute function tidegate.note_facts();`,
  )
  .join('')
