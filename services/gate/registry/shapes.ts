import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import type { RegisteredService } from './registered.ts'

/** A service as the public registry shows it. What is not set is left out; without documentation of its own, its website. */
export function registryEntryJson({ id, status, verified, definition }: RegisteredService) {
  const { branding, consent, dashboard_login_url, docs_url } = definition
  return {
    id,
    status,
    discoverable: definition.discoverable,
    name: definition.name,
    description: definition.description,
    website: definition.website,
    ...(dashboard_login_url !== null && { dashboard_login_url }),
    env_vars: definition.env_vars,
    docs_url: docs_url ?? definition.website,
    sdks: definition.sdks,
    branding: { ...present(branding), verified },
    consent: present(consent),
  }
}

/** The same as its owner sees it. */
export function managedServiceJson(service: GateServiceRow) {
  return {
    object: 'gate_service',
    ...registryEntryJson(service),
    webhook_endpoint_id: service.definition.webhook_endpoint_id,
    created_at: new Date(service.created_at).toISOString(),
    updated_at: new Date(service.updated_at).toISOString(),
  }
}

/** The members that are set. */
function present<T extends object>(members: T): Partial<T> {
  const set: Partial<T> = { ...members }
  for (const name in set) if (set[name] === null) delete set[name]
  return set
}
