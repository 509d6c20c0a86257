import { type CommandDeps, newId } from '../../infra/event-store/decide.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { findOrganization } from '../../projections/organizations/queries.ts'
import { findDataExpiration, findDataPolicy } from '../../projections/policies/queries.ts'
import type { RetentionDays } from '../../projections/policies/tables.ts'
import { eventTopics } from '../../schemas/events.ts'
import { organizationStream } from './commands.ts'
import { type DataPolicyChanges, decideDataPolicy, decideExpiration } from './decide-data-policy.ts'

/** Returns the event stream of an organization's policies. It shares the lock of the organization's other commands. */
export function policyStreamOf(organizationId: string) {
  const { topic, projection, key, locks } = organizationStream(organizationId)
  const alsoReads = [{ projection, topic, key }]
  const policies = eventTopics.OrganizationDataPolicyChanged
  return { topic: policies, projection: 'policies', key, locks, alsoReads }
}

/** Throws 404 if the organization does not exist, 422 if days are out of bounds or facts are unknown. */
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

/** Records that the organization's data expired up to now. Returns false if nothing expired since the last time. */
export async function recordOrganizationDataExpiry(
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
