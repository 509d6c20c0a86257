import { type CallerKind, requireUsableOrganization } from '../../infra/access/organization.ts'
import { checkAll } from '../../infra/errors/check-all.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import {
  type DecidedEvent,
  type EventIdAndTime,
  eventAbout,
} from '../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { checkedName, invalid } from '../../infra/http/checked-fields.ts'
import { derivedId, type OrganizationId } from '../../infra/ids.ts'
import { keysOf } from '../../infra/postgres/table.ts'
import type { OrganizationRow, OrganizationStatus } from '../../projections/organizations/tables.ts'
import { inputLimits } from './checked-input.ts'

export interface CreateOrganization {
  organizationId: OrganizationId
  /** Checked by `completeOrganizationRequest`, like `slug`. */
  name: string
  slug: string
  /** Epoch milliseconds, as in all commands. */
  now: number
}

/** Throws 409 if another organization has the slug. Returns no event if the command is a repeat. */
export function decideOrganizationCreation(
  { takenBy }: { takenBy: string | undefined },
  { organizationId, name, slug, now }: CreateOrganization,
): DecidedEvent[] {
  if (takenBy === organizationId) return []
  if (takenBy) {
    throw new ApiError('request.conflict', {
      message: `The slug ${slug} is taken.`,
      details: {
        fields: [{ name: 'slug', issue: 'taken', received: slug }],
        parameter_set: 'organization_create',
      },
    })
  }
  const data = { organization_id: organizationId, name, slug, created_at: now }
  const eventId = derivedId('evt', organizationId, 'created')
  return [
    aboutOrganization(organizationId, { type: 'OrganizationCreated', data }, { eventId, now }),
  ]
}

function aboutOrganization(
  organizationId: string,
  event: DomainEvent,
  name: EventIdAndTime,
): DecidedEvent {
  return eventAbout({ organization_id: organizationId, environment: null }, event, name)
}

/** Identifies a change. A repeated command has the same `changeId`, from which event ids are derived. */
export interface ChangeIdentity {
  changeId: string
  now: number
}

interface UpdateOrganization extends ChangeIdentity {
  by: CallerKind
  name?: string | undefined
  status?: OrganizationStatus | undefined
}

/**
 * Throws 404 if the organization does not exist, 403 if it is not active and the caller is its key, 422 for an invalid
 * name.
 */
export function decideOrganizationUpdate(
  state: OrganizationRow | undefined,
  { by, changeId, now, name, status }: UpdateOrganization,
): DecidedEvent[] {
  const organization = requireUsableOrganization(state, by)
  const events = [
    ...changeName(organization, name, now),
    ...changeStatus(organization, status, now),
  ]
  return events.map((event) =>
    aboutOrganization(organization.id, event, {
      eventId: derivedId('evt', changeId, event.type),
      now,
    }),
  )
}

function changeName(
  { id, ...current }: OrganizationRow,
  text: string | undefined,
  now: number,
): DomainEvent[] {
  if (text === undefined) return []
  const name = checkedName(text, {
    max: inputLimits.organizationName,
    parameterSet: 'organization_update',
  })
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

const maxLimit = 1_000_000_000
const limitBounds = {
  // A request with ten IP rotation items costs 10 units, so a lower limit would never admit it.
  secret_limit: { min: 10, max: maxLimit, unset: 'the default' },
  publishable_limit: { min: 1, max: maxLimit, unset: 'the default' },
  max_key_days: { min: 1, max: 36_500, unset: 'unlimited' },
}
type LimitName = keyof typeof limitBounds

/**
 * Changes the rate limits of the organization's secret keys together and its publishable keys together, in units per
 * minute, and the maximum lifetime of new keys. null: the server's default or unlimited; undefined: unchanged.
 */
export function decideLimits(
  state: OrganizationRow | undefined,
  {
    changeId,
    now,
    ...limits
  }: ChangeIdentity & { [Name in LimitName]?: number | null | undefined },
): DecidedEvent[] {
  const organization = requireUsableOrganization(state, 'operator')
  const limitOf = (name: LimitName) => () =>
    limits[name] === undefined ? organization[name] : checkedLimit(limits[name], name)
  const next = checkAll({
    secret_limit: limitOf('secret_limit'),
    publishable_limit: limitOf('publishable_limit'),
    max_key_days: limitOf('max_key_days'),
  })
  if (keysOf(next).every((name) => next[name] === organization[name])) return []
  const data = { organization_id: organization.id, ...next, changed_at: now }
  return [
    aboutOrganization(
      organization.id,
      { type: 'OrganizationLimitsChanged', data },
      { eventId: changeId, now },
    ),
  ]
}

function checkedLimit(limit: number | null, name: LimitName): number | null {
  const { min, max, unset } = limitBounds[name]
  if (limit === null || (Number.isInteger(limit) && limit >= min && limit <= max)) return limit
  const expected = `a whole number from ${min} to ${max}, or ${unset}`
  throw invalid({ name, issue: 'invalid', expected }, 'organization_limits')
}

export const capabilities = ['ip_rotation'] as const

export function decideCapability(
  state: OrganizationRow | undefined,
  {
    capability,
    enabled,
    changeId: eventId,
    now,
  }: ChangeIdentity & { capability: string; enabled: boolean },
): DecidedEvent[] {
  const { id: organization_id, capabilities: current } = requireUsableOrganization(
    state,
    'operator',
  )
  if (!capabilities.some((name) => name === capability)) {
    const field = {
      name: 'capability',
      issue: 'invalid_value',
      expected: 'one of allowed_values',
    }
    throw invalid(field, 'organization_capability', { allowed_values: [...capabilities] })
  }
  if (current.includes(capability) === enabled) return []
  const ids = { organization_id, capability }
  const event: DomainEvent = enabled
    ? { type: 'OrganizationCapabilityEnabled', data: { ...ids, enabled_at: now } }
    : { type: 'OrganizationCapabilityDisabled', data: { ...ids, disabled_at: now } }
  return [aboutOrganization(organization_id, event, { eventId, now })]
}
