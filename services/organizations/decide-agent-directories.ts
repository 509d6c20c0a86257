import { type CallerKind, requireUsableOrganization } from '../../infra/access/organization.ts'
import { checkAll, checkPresent } from '../../infra/errors/check-all.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  decidedEvent,
  type EventIdAndTime,
} from '../../infra/event-store/decide.ts'
import { checkedName, invalid } from '../../infra/http/checked-fields.ts'
import { agentDomain } from '../../infra/wire/web-bot-auth/fields.ts'
import type { OrganizationRow } from '../../projections/organizations/tables.ts'
import type { AgentDirectoryRow } from '../../projections/policies/tables.ts'

export interface DirectoriesState {
  organization: OrganizationRow | undefined
  /** Directories that the organization trusts. */
  directories: readonly Pick<AgentDirectoryRow, 'domain' | 'name'>[]
}

export interface DirectoryRequest {
  domain: string
  /** Name of the signing operator. Default: the domain. */
  name?: string | null | undefined
}

export const directoryLimits = { name: 100, directories: 100 } as const

const parameterSet = 'agent_directory_add'

/** Returns the directory as it is stored. Throws 422 naming each invalid field. */
export function checkedDirectory({ domain, name = null }: DirectoryRequest) {
  return checkAll({
    domain: () => checkedDomain(domain),
    name: () => (name === null ? null : checkedAgentName(name)),
  })
}

/** Throws 422 naming the invalid fields among those that are present. */
export function checkDirectoryFields({
  domain,
  name,
}: {
  [K in keyof DirectoryRequest]?: DirectoryRequest[K] | undefined
}): void {
  checkPresent<{ domain: string; name: string }>({
    domain: domain !== undefined && (() => checkedDomain(domain)),
    name: typeof name === 'string' && (() => checkedAgentName(name)),
  })
}

const checkedAgentName = (name: string) =>
  checkedName(name, { max: directoryLimits.name, parameterSet })

function checkedDomain(text: string): string {
  const domain = agentDomain(text)
  if (domain !== undefined) return domain
  const expected = 'a domain such as agent.example, with its port unless that is 443'
  throw invalid({ name: 'domain', issue: 'invalid', expected }, parameterSet)
}

/**
 * Throws 404 if the organization does not exist, 403 if it is not active and the caller is its key, 422 for invalid
 * fields, and 409 if it already has the maximum number of directories.
 */
export function decideDirectoryAddition(
  { organization, directories }: DirectoriesState,
  { by, eventId, now, ...request }: DirectoryRequest & EventIdAndTime & { by: CallerKind },
): DecidedEvent[] {
  const { id: organization_id } = requireUsableOrganization(organization, by)
  const { domain, name } = checkedDirectory(request)
  const current = directories.find((directory) => directory.domain === domain)
  if (current?.name === name) return []
  if (!current && directories.length >= directoryLimits.directories) throw tooMany()
  const data = { organization_id, domain, name, added_at: now }
  const about = { organizationId: organization_id, environment: null, eventId, now }
  return [decidedEvent({ type: 'AgentDirectoryAdded', data }, about)]
}

function tooMany(): ApiError {
  const message = `An organization may have ${directoryLimits.directories} agent directories. Remove one first.`
  return new ApiError('request.conflict', { message })
}

/**
 * Throws 404 if the organization or directory does not exist, 403 if the organization is not active and the caller is
 * its key.
 */
export function decideDirectoryRemoval(
  { organization, directories }: DirectoriesState,
  { by, domain: text, eventId, now }: { domain: string; by: CallerKind } & EventIdAndTime,
): DecidedEvent[] {
  const { id: organization_id } = requireUsableOrganization(organization, by)
  const domain = agentDomain(text)
  if (domain === undefined || !directories.some((directory) => directory.domain === domain))
    throw new ApiError('request.not_found', {
      message: 'The organization has no such agent directory.',
    })
  const data = { organization_id, domain, removed_at: now }
  const about = { organizationId: organization_id, environment: null, eventId, now }
  return [decidedEvent({ type: 'AgentDirectoryRemoved', data }, about)]
}
