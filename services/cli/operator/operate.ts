import { ApiError } from '../../../infra/errors/errors.ts'
import type { Decide } from '../../../infra/event-store/decide.ts'
import { isId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import {
  findKey,
  findOrganization,
  findOrganizationBySlug,
  listKeys,
} from '../../../projections/organizations/queries.ts'
import type { ApiKeyRow, OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { Core } from '../../server/dependencies.ts'

export interface OperatorOptions {
  json: boolean
}

export interface CommandOutcome {
  data: object
  text: string
}

export type Work = (core: Core) => Promise<CommandOutcome>

export function operate(options: OperatorOptions, work: Work): Promise<void> {
  return printOutcome(options, () => withCore(work))
}

/** What commands work with that a person at this machine gives; events name `command`, as `keys create`. */
export function asOperator(core: Core, command: string): Core & { decide: Decide } {
  return { ...core, decide: core.decideAs({ type: 'operator', id: command }) }
}

/**
 * Prints what came of the work: `text`, or `{ "data": ... }`. A failure is a message on standard error, or
 * `{ "error": ... }` on standard output; the exit code is then 1.
 */
export async function printOutcome(
  { json }: OperatorOptions,
  work: () => Promise<CommandOutcome>,
): Promise<void> {
  try {
    const { data, text } = await work()
    console.log(json ? JSON.stringify({ data }, null, 2) : text)
  } catch (error) {
    const { errorText, reportFailure } = await import('../failure.ts')
    reportFailure(error, { json, textOf: errorText })
  }
}

/** The organization of an id or a slug. ApiError: 404, without what was given, which may be a key. */
export async function requireOrganization(db: Db, idOrSlug: string): Promise<OrganizationRow> {
  const organization = isId('org', idOrSlug)
    ? await findOrganization(db, idOrSlug)
    : await findOrganizationBySlug(db, idOrSlug)
  if (organization) return organization
  const message = 'organization: no such id or slug; "tidegate org list" shows those there are.'
  throw new ApiError('request.not_found', { message, details: { fields: [missing('organization')] } })
}

export async function requireKey(db: Db, organizationId: string, keyId: string): Promise<ApiKeyRow> {
  const key = isId('key', keyId) ? await findKey(db, organizationId, keyId) : undefined
  if (key) return key
  const message =
    'key: no such id (key_...) in this organization; "tidegate keys list" shows those there are.'
  throw new ApiError('request.not_found', { message, details: { fields: [missing('key')] } })
}

const missing = (name: string) => ({ name, issue: 'not_found' })

const pageSize = 200

export async function keysOfOrganization(db: Db, organizationId: string): Promise<ApiKeyRow[]> {
  const keys: ApiKeyRow[] = []
  for (;;) {
    const last = keys.at(-1)
    const after = last && { createdAt: last.created_at, id: last.id }
    const page = await listKeys(db, organizationId, { limit: pageSize, after })
    keys.push(...page.rows)
    if (!page.hasMore) return keys
  }
}

/** Runs one command against the database and log in the settings; see `openOperatorCore`. */
export async function withCore<T>(work: (core: Core) => Promise<T>): Promise<T> {
  const { openOperatorCore } = await import('./core.ts')
  const core = await openOperatorCore()
  try {
    return await work(core)
  } finally {
    await core.close()
  }
}
