import { type CommandDeps, newId } from '../../infra/event-store/command-deps.ts'
import type { Decision } from '../../infra/event-store/decide.ts'
import type { DecisionId, OrganizationId } from '../../infra/ids.ts'
import {
  type Actor,
  findOrganization,
  findOrganizationBySlug,
} from '../../projections/organizations/queries.ts'
import type { OrganizationRow, OrganizationStatus } from '../../projections/organizations/tables.ts'
import { completeOrganizationRequest, createOrganization as decideCreation } from './create-organization.ts'
import { setCapability as decideCapability } from './set-capability.ts'
import { setLimits as decideLimits } from './set-limits.ts'
import { streamOf } from './stream.ts'
import { updateOrganization as decideUpdate } from './update-organization.ts'

type Deps = Omit<CommandDeps, 'keyring'>

/** Creates an active organization. ApiError: 409 slug taken, 422 bad name or slug. */
export async function createOrganization(
  { decide, clock, ...deps }: Deps,
  request: { name: string; slug: string },
): Promise<{ organizationId: OrganizationId }> {
  const { name, slug } = completeOrganizationRequest(request)
  const now = clock()
  const organizationId = newId('org', { ...deps, now })
  await decide({
    ...streamOf(organizationId),
    locks: [`organization-slug:${slug}`],
    // Whoever has the slug may be in any partition.
    reads: 'topic',
    load: async (tx) => ({ takenBy: (await findOrganizationBySlug(tx, slug))?.id }),
    decide: (state) => decideCreation(state, { organizationId, name, slug, now }),
  })
  return { organizationId }
}

interface Update {
  organizationId: string
  by: Actor
  name?: string | undefined
  status?: OrganizationStatus | undefined
}

/** Renames it and sets its status. ApiError: 404 no such organization, 403 not active (`by` its key), 422 bad name. */
export function updateOrganization(deps: Deps, { organizationId, ...changes }: Update): Promise<void> {
  return change(deps, {
    organizationId,
    about: (organization, { eventId, now }) =>
      decideUpdate(organization, { ...changes, changeId: eventId, now }),
  })
}

interface Limits {
  organizationId: string
  /** Units in 60 seconds; null = the server's default, undefined = as it is. */
  secretLimit?: number | null | undefined
  publishableLimit?: number | null | undefined
}

/** For the operator. ApiError: 404 no such organization, 422 not a limit. */
export function setLimits(deps: Deps, { organizationId, ...limits }: Limits): Promise<void> {
  return change(deps, {
    organizationId,
    about: (organization, at) => decideLimits(organization, { ...limits, ...at }),
  })
}

interface CapabilityChange {
  organizationId: string
  capability: string
  enabled: boolean
}

/** For the operator. ApiError: 404 no such organization, 422 no such capability. */
export function setCapability(deps: Deps, { organizationId, ...wanted }: CapabilityChange): Promise<void> {
  return change(deps, {
    organizationId,
    about: (organization, at) => decideCapability(organization, { ...wanted, ...at }),
  })
}

interface Change {
  organizationId: string
  about: (organization: OrganizationRow | undefined, at: { eventId: DecisionId; now: number }) => Decision[]
}

async function change({ decide, clock, ...deps }: Deps, { organizationId, about }: Change): Promise<void> {
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  await decide({
    ...streamOf(organizationId),
    load: (tx) => findOrganization(tx, organizationId),
    decide: (organization) => about(organization, { eventId, now }),
  })
}
