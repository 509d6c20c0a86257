import type { Command } from 'commander'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { Decide } from '../../../infra/event-store/decide.ts'
import { isId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import {
  findKey,
  findOrganization,
  findOrganizationBySlug,
} from '../../../projections/organizations/queries.ts'
import type { ApiKeyRow, OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { Core, CoreOptions } from '../../server/dependencies.ts'

export interface OperatorOptions {
  json: boolean
}

/** Output of a command: `{ "data": ... }` with --json, otherwise the text. */
export interface CommandOutcome {
  data: object
  text: string
}

/** Runs a command against the database and log in the settings, and prints its outcome or failure. */
export function runAndPrint(
  options: OperatorOptions,
  work: (core: Core) => Promise<CommandOutcome>,
  command?: Command,
): Promise<void> {
  return printOutcome(options, () => withCore(work), command)
}

/** Adds a subcommand whose first argument is an organization, by id or slug. `run` gets the id. */
export function organizationCommand<Flags extends OperatorOptions>(
  parent: Command,
  { name, description }: { name: string; description: string },
  run: (core: Core, organizationId: string, flags: Flags) => Promise<CommandOutcome>,
): Command {
  return parent
    .command(name)
    .description(description)
    .argument('<organization>', 'organization id or slug')
    .action((organization: string, flags: Flags, command: Command) =>
      runAndPrint(
        flags,
        async (core) => run(core, (await requireOrganization(core.pool, organization)).id, flags),
        command,
      ),
    )
}

/** Returns dependencies that record the operator command, such as `keys create`, as the actor of events. */
export function asOperator(core: Core, command: string): Core & { decide: Decide } {
  return { ...core, decide: core.decideAs({ type: 'operator', id: command }) }
}

/** Prints the outcome. If `work` throws, prints the error with the names of the wrong options, and sets exit code 1. */
export async function printOutcome(
  { json }: OperatorOptions,
  work: () => Promise<CommandOutcome>,
  command?: Command,
): Promise<void> {
  try {
    const { data, text } = await work()
    console.log(json ? JSON.stringify({ data }, null, 2) : text)
  } catch (error) {
    const { errorText, reportFailure } = await import('../failure.ts')
    reportFailure(error, { json, textOf: (thrown) => errorText(thrown, command) })
  }
}

/** Finds an organization by id or slug. Throws a 404 that doesn't repeat the argument, which may be a pasted key. */
export async function requireOrganization(db: Db, idOrSlug: string): Promise<OrganizationRow> {
  const find = isId('org', idOrSlug) ? findOrganization : findOrganizationBySlug
  const organization = await find(db, idOrSlug)
  if (organization) return organization
  throw notFound('organization', 'no such id or slug; list them with "tidegate org list"')
}

/** Finds a key by id. Throws a 404 that doesn't repeat the argument, which may be a pasted key. */
export async function requireKey(
  db: Db,
  organizationId: string,
  keyId: string,
): Promise<ApiKeyRow> {
  const key = isId('key', keyId) ? await findKey(db, organizationId, keyId) : undefined
  if (key) return key
  throw notFound(
    'key',
    'no such id (key_...) in this organization; list them with "tidegate keys list"',
  )
}

export function notFound(name: string, problem: string): ApiError {
  const details = { fields: [{ name, issue: 'not_found' }] }
  return new ApiError('request.not_found', { message: `${name}: ${problem}`, details })
}

/** Runs `work` with the core that openOperatorCore opens, and closes it. */
export async function withCore<T>(
  work: (core: Core) => Promise<T>,
  options: Pick<CoreOptions, 'logClaim'> = {},
): Promise<T> {
  const { openOperatorCore } = await import('./core.ts')
  const core = await openOperatorCore(options)
  return await work(core).finally(core.close)
}
