import { type CommandDeps, newId } from '../../infra/event-store/decide.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { findOrganization } from '../../projections/organizations/queries.ts'
import { findDataExpiration, findDataPolicy } from '../../projections/policies/queries.ts'
import type { RetentionDays } from '../../projections/policies/tables.ts'
import { eventTopics } from '../../schemas/events.ts'
import { organizationStream } from './commands.ts'
import { type DataPolicyChanges, decideDataPolicy, decideExpiration } from './decide-data-policy.ts'

/** Returns the event stream of an organization's policies, under the lock of its other commands. */
export function policyStreamOf(organizationId: string) {
  const { topic, projection, key, locks } = organizationStream(organizationId)
  const alsoReads = [{ projection, topic, key }]
  const policies = eventTopics.OrganizationDataPolicyChanged
  return { topic: policies, projection: 'policies', key, locks, alsoReads }
}

/** ApiError: 404 no such organization, 422 days out of bounds or unknown facts. */
export async function setDataPolicy(
  { decide, clock, ...deps }: Omit<CommandDeps, 'keyring'>,
  { organizationId, changes }: { organizationId: string; changes: DataPolicyChanges },
): Promise<void> {
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  await decide({
    ...policyStreamOf(organizationId),
    load: async (tx: Tx) => ({
      organization: await findOrganization(tx, organizationId),
      policy: await findDataPolicy(tx, organizationId),
    }),
    decide: (state) => decideDataPolicy(state, { changes, eventId, now }),
  })
}

/**
 * Records the expiry of the organization's data up to now. Returns false if nothing has expired since the last time.
 */
export async function expireData(
  { decide, clock }: Pick<CommandDeps, 'decide' | 'clock'>,
  { organizationId, days }: { organizationId: string; days: RetentionDays },
): Promise<boolean> {
  const now = clock()
  const events = await decide({
    ...policyStreamOf(organizationId),
    load: (tx: Tx) => findDataExpiration(tx, organizationId),
    decide: (current) => decideExpiration(current, { organizationId, days, now }),
  })
  return events.length > 0
}
