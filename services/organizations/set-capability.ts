import type { Decision } from '../../infra/event-store/decide.ts'
import { decided } from '../../infra/event-store/decided.ts'
import { invalid } from '../../infra/http/checked-fields.ts'
import { organizationFor } from '../../projections/organizations/queries.ts'
import type { OrganizationRow } from '../../projections/organizations/tables.ts'

/** What an organization can be allowed to use that is off by default. */
export const capabilities = ['ip_rotation'] as const
export type Capability = (typeof capabilities)[number]

export interface SetCapability {
  capability: string
  enabled: boolean
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

/** Turns a capability on or off; no event when it is so already. 404 without the organization, 422 for an unknown one. */
export function setCapability(state: OrganizationRow | undefined, command: SetCapability): Decision[] {
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
      ? decided({ type: 'OrganizationCapabilityEnabled', data: { ...data, enabled_at: now } }, about)
      : decided({ type: 'OrganizationCapabilityDisabled', data: { ...data, disabled_at: now } }, about),
  ]
}
