import type { DomainEvent } from '../../infra/event-store/codec.ts'
import type { Decision } from '../../infra/event-store/decide.ts'
import { decided } from '../../infra/event-store/decided.ts'
import { checkedName } from '../../infra/http/checked-fields.ts'
import { derivedId } from '../../infra/ids.ts'
import { type Actor, organizationFor } from '../../projections/organizations/queries.ts'
import type { OrganizationRow, OrganizationStatus } from '../../projections/organizations/tables.ts'
import { bounds } from './checked-fields.ts'

export interface UpdateOrganization {
  by: Actor
  name?: string | undefined
  status?: OrganizationStatus | undefined
  /** Of this one update: its events get their ids from it. */
  changeId: string
  /** Epoch milliseconds. */
  now: number
}

/**
 * Renames the organization and sets its status, as far as that changes anything. 404 without it, 403 when its own key
 * asks and it is not active, 422 for a bad name.
 */
export function updateOrganization(
  state: OrganizationRow | undefined,
  { by, changeId, now, ...changes }: UpdateOrganization,
): Decision[] {
  const organization = organizationFor(state, by)
  const { id: organizationId } = organization
  const events = [
    ...rename(organization, changes.name, now),
    ...changeStatus(organization, changes.status, now),
  ]
  return events.map((event) => {
    const eventId = derivedId('evt', changeId, event.type)
    return decided(event, { organizationId, environment: null, eventId, now })
  })
}

function rename({ id, ...current }: OrganizationRow, text: string | undefined, now: number): DomainEvent[] {
  if (text === undefined) return []
  const name = checkedName(text, { max: bounds.organizationName, parameterSet: 'organization_update' })
  if (name === current.name) return []
  return [{ type: 'OrganizationRenamed', data: { organization_id: id, name, renamed_at: now } }]
}

function changeStatus(
  { id: organization_id, ...current }: OrganizationRow,
  status: OrganizationStatus | undefined,
  now: number,
): DomainEvent[] {
  if (status === undefined || status === current.status) return []
  switch (status) {
    case 'active':
      return [{ type: 'OrganizationReactivated', data: { organization_id, reactivated_at: now } }]
    case 'suspended':
      return [{ type: 'OrganizationSuspended', data: { organization_id, suspended_at: now } }]
    case 'deleted':
      return [{ type: 'OrganizationDeleted', data: { organization_id, deleted_at: now } }]
  }
}
