import { type CallerKind, organizationFor } from '../../infra/access/organization.ts'
import { checkAll } from '../../infra/errors/check-all.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import type { DomainEvent } from '../../infra/event-store/codec.ts'
import { type DecidedEvent, decidedEvent } from '../../infra/event-store/decide.ts'
import { checkedName, invalid } from '../../infra/http/checked-fields.ts'
import { derivedId, type OrganizationId } from '../../infra/ids.ts'
import type { OrganizationRow, OrganizationStatus } from '../../projections/organizations/tables.ts'
import { inputLimits } from './checked-input.ts'

export interface CreateOrganization {
  organizationId: OrganizationId
  /** Checked, as `slug` is: see `completeOrganizationRequest`. */
  name: string
  slug: string
  /** Epoch milliseconds, as in all commands. */
  now: number
}

export interface SlugState {
  takenBy: string | undefined
}

/** 409 when another organization has the slug. A repeated command finds its own organization and makes no event. */
export function decideOrganizationCreation(
  { takenBy }: SlugState,
  command: CreateOrganization,
): DecidedEvent[] {
  const { organizationId, name, slug, now } = command
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
    decidedEvent({ type: 'OrganizationCreated', data }, { organizationId, environment: null, eventId, now }),
  ]
}

export interface UpdateOrganization {
  by: CallerKind
  name?: string | undefined
  status?: OrganizationStatus | undefined
  changeId: string
  now: number
}

/** 404 without the organization, 403 when its own key asks and it is not active, 422 for a bad name. */
export function decideOrganizationUpdate(
  state: OrganizationRow | undefined,
  { by, changeId, now, ...changes }: UpdateOrganization,
): DecidedEvent[] {
  const organization = organizationFor(state, by)
  const { id: organizationId } = organization
  const events = [
    ...rename(organization, changes.name, now),
    ...changeStatus(organization, changes.status, now),
  ]
  return events.map((event) => {
    const eventId = derivedId('evt', changeId, event.type)
    return decidedEvent(event, { organizationId, environment: null, eventId, now })
  })
}

function rename({ id, ...current }: OrganizationRow, text: string | undefined, now: number): DomainEvent[] {
  if (text === undefined) return []
  const name = checkedName(text, { max: inputLimits.organizationName, parameterSet: 'organization_update' })
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

export interface SetLimits {
  /** Units in 60 seconds of the bucket of all secret keys; null = the server's default, undefined = as it is. */
  secretLimit?: number | null | undefined
  publishableLimit?: number | null | undefined
  eventId: string
  now: number
}

// A secret key's most expensive request has ten items of IP rotation. With a lower limit it would never be admitted.
const minSecretLimit = 10
const minPublishableLimit = 1
const maxLimit = 1_000_000_000

export function decideLimits(state: OrganizationRow | undefined, command: SetLimits): DecidedEvent[] {
  const { eventId, now } = command
  const organization = organizationFor(state, 'operator')
  const { id: organizationId } = organization
  const { secretLimit, publishableLimit } = command
  const { secret_limit, publishable_limit } = checkAll({
    secret_limit: () =>
      secretLimit === undefined
        ? organization.secret_limit
        : checkedLimit(secretLimit, { name: 'secret_limit', min: minSecretLimit }),
    publishable_limit: () =>
      publishableLimit === undefined
        ? organization.publishable_limit
        : checkedLimit(publishableLimit, { name: 'publishable_limit', min: minPublishableLimit }),
  })
  const same =
    secret_limit === organization.secret_limit && publishable_limit === organization.publishable_limit
  if (same) return []
  const data = { organization_id: organizationId, secret_limit, publishable_limit, changed_at: now }
  const about = { organizationId, environment: null, eventId, now }
  return [decidedEvent({ type: 'OrganizationLimitsChanged', data }, about)]
}

function checkedLimit(
  limit: number | null,
  { name, min }: { name: 'secret_limit' | 'publishable_limit'; min: number },
): number | null {
  if (limit === null || (Number.isInteger(limit) && limit >= min && limit <= maxLimit)) return limit
  const expected = `a whole number from ${min} to ${maxLimit}, or the default`
  throw invalid({ name, issue: 'invalid', expected }, 'organization_limits')
}

export const capabilities = ['ip_rotation'] as const
export type Capability = (typeof capabilities)[number]

export interface SetCapability {
  capability: string
  enabled: boolean
  eventId: string
  now: number
}

export function decideCapability(state: OrganizationRow | undefined, command: SetCapability): DecidedEvent[] {
  const { capability, enabled, eventId, now } = command
  const { id: organizationId, capabilities: current } = organizationFor(state, 'operator')
  if (!capabilities.some((known) => known === capability)) {
    const field = { name: 'capability', issue: 'invalid_value', expected: 'a capability of this version' }
    throw invalid(field, 'organization_capability', { allowed_values: [...capabilities] })
  }
  if (current.includes(capability) === enabled) return []
  const about = { organizationId, environment: null, eventId, now }
  const data = { organization_id: organizationId, capability }
  return [
    enabled
      ? decidedEvent({ type: 'OrganizationCapabilityEnabled', data: { ...data, enabled_at: now } }, about)
      : decidedEvent({ type: 'OrganizationCapabilityDisabled', data: { ...data, disabled_at: now } }, about),
  ]
}
