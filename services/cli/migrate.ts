import type { Command } from 'commander'
import pg from 'pg'
import type { Tx } from '../../infra/postgres/pool.ts'

interface MigrateOptions {
  grant?: string
  analysts?: string
  organization?: string
  adoptLog: boolean
}

export function defineMigrate(command: Command): void {
  command
    .option('--grant <user>', 'database user of servers that may not create tables')
    .option('--analysts <role>', 'database role to give read access to read.session_facts only')
    .option('--organization <id or slug>', 'with --analysts: only the rows of this organization')
    .option(
      '--adopt-log',
      'accept the configured log as a copy of the previous one, with the same offsets',
      false,
    )
    .action(runMigrate)
}

async function runMigrate(options: MigrateOptions): Promise<void> {
  await prepare(options).catch(async (error: unknown) => {
    const { logStartFailure } = await import('./start-failure.ts')
    logStartFailure(error, 'failed to prepare the database and the log')
    process.exitCode = 1
  })
}

async function prepare({ grant, adoptLog, analysts, organization }: MigrateOptions): Promise<void> {
  if (organization !== undefined && analysts === undefined)
    throw new Error('--organization needs --analysts: it limits the rows that the role can read.')
  const { withStores } = await import('./operator/core.ts')
  const { transaction } = await import('../../infra/postgres/pool.ts')
  const { prepareStores } = await import('../server/dependencies.ts')
  await withStores(async (stores) => {
    await prepareStores(stores, { adoptLog, waitMs: stores.config.LOG_WAIT_MS })
    if (grant) await transaction(stores.pool, (tx) => grantServer(tx, grant))
    if (analysts)
      await transaction(stores.pool, (tx) => grantAnalyst(tx, { role: analysts, organization }))
    for (const warning of await stores.log.warnings().catch(() => []))
      console.log(`warning: ${warning}`)
  })
  console.log(
    grant
      ? `Tables and topics are ready, and ${grant} has access.`
      : 'Tables and topics are ready.',
  )
  if (analysts)
    console.log(
      `${analysts} can read read.session_facts for ${organization ?? 'every organization'}.`,
    )
}

async function grantAnalyst(
  tx: Tx,
  { role, organization }: { role: string; organization: string | undefined },
): Promise<void> {
  const { requireOrganization } = await import('./operator/run.ts')
  const { addAnalyst } = await import('../../projections/sessions/session-facts.ts')
  const { rows } = await tx.query('select from pg_roles where rolname = $1', [role])
  if (rows.length === 0)
    throw new Error(`--analysts: the database has no role "${role}". Create it first.`)
  const organizationId =
    organization === undefined ? null : (await requireOrganization(tx, organization)).id
  await addAnalyst(tx, { role, organizationId })
}

// Grants read and write access to all tables, but not the right to create any. The default privileges cover the tables
// of later rebuilds, if the current user runs them.
async function grantServer(tx: Tx, user: string): Promise<void> {
  const to = pg.escapeIdentifier(user)
  const { rows } = await tx.query<{ name: string }>(
    `select quote_ident(nspname) as name from pg_namespace
     where nspname in ('tidegate', 'tidegate_log', 'tidegate_keys', 'scoring', 'read')
        or nspname in (select schema_name from tidegate.projection_builds)`,
  )
  const schemas = rows.map(({ name }) => name).join(', ')
  const [tables, sequences] = ['select, insert, update, delete, truncate', 'usage, select']
  for (const statement of [
    `grant usage on schema ${schemas} to ${to}`,
    `grant ${tables} on all tables in schema ${schemas} to ${to}`,
    `grant ${sequences} on all sequences in schema ${schemas} to ${to}`,
    `alter default privileges grant usage on schemas to ${to}`,
    `alter default privileges grant ${tables} on tables to ${to}`,
    `alter default privileges grant ${sequences} on sequences to ${to}`,
  ])
    await tx.query(statement)
}
