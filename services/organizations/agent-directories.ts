import type { CallerKind } from '../../infra/access/organization.ts'
import {
  type CommandDeps,
  type DecidedEvent,
  type EventIdAndTime,
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

/** Trusts the directory, or renames it if already trusted. Throws the errors of `decideDirectoryAddition`. */
export function addAgentDirectory(
  deps: Deps,
  { organizationId, ...request }: OrganizationCommand & DirectoryRequest,
): Promise<void> {
  return changeDirectories(deps, organizationId, (state, event) =>
    decideDirectoryAddition(state, { ...request, ...event }),
  )
}

/** Throws the errors of `decideDirectoryRemoval`. */
export function removeAgentDirectory(
  deps: Deps,
  { organizationId, ...request }: OrganizationCommand & { domain: string },
): Promise<void> {
  return changeDirectories(deps, organizationId, (state, event) =>
    decideDirectoryRemoval(state, { ...request, ...event }),
  )
}

async function changeDirectories(
  { decide, clock, ...deps }: Deps,
  organizationId: string,
  decideChange: (state: DirectoriesState, event: EventIdAndTime) => DecidedEvent[],
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
