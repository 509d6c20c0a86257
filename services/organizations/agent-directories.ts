import type { CallerKind } from '../../infra/access/organization.ts'
import {
  type CommandDeps,
  type DecidedEvent,
  type NewEvent,
  newId,
} from '../../infra/event-store/decide.ts'
import { findOrganization } from '../../projections/organizations/queries.ts'
import { findAgentDirectories } from '../../projections/policies/queries.ts'
import { policyStreamOf } from './data-policies.ts'
import {
  type DirectoriesState,
  type DirectoryRequest,
  decideDirectoryAddition,
  decideDirectoryRemoval,
} from './decide-agent-directories.ts'

type Deps = Omit<CommandDeps, 'keyring'>

interface OrganizationCommand {
  organizationId: string
  by: CallerKind
}

/** Trusts the directory, or renames it if it is already trusted. ApiError as `decideDirectoryAddition`. */
export function addAgentDirectory(
  deps: Deps,
  { organizationId, ...request }: OrganizationCommand & DirectoryRequest,
): Promise<void> {
  return change(deps, organizationId, (state, event) =>
    decideDirectoryAddition(state, { ...request, ...event }),
  )
}

/** ApiError as `decideDirectoryRemoval`. */
export function removeAgentDirectory(
  deps: Deps,
  { organizationId, ...request }: OrganizationCommand & { domain: string },
): Promise<void> {
  return change(deps, organizationId, (state, event) =>
    decideDirectoryRemoval(state, { ...request, ...event }),
  )
}

async function change(
  { decide, clock, ...deps }: Deps,
  organizationId: string,
  decideChange: (state: DirectoriesState, event: NewEvent) => DecidedEvent[],
): Promise<void> {
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  await decide({
    ...policyStreamOf(organizationId),
    load: async (tx) => ({
      organization: await findOrganization(tx, organizationId),
      directories: await findAgentDirectories(tx, organizationId),
    }),
    decide: (state) => decideChange(state, { eventId, now }),
  })
}
